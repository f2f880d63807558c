"""Files of positions and of rewired graphs, each bound by digest to the graph it was computed from."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from beltrami.data.file import tensor_digest, write_atomically
from beltrami.errors import DataError
from beltrami.graph import Edges

POSITIONS, STENCIL = "positions", "stencil"
FLAT, BALL = "flat", "ball"
VERBS = {POSITIONS: "encode", STENCIL: "rewire"}
HEADER = "beltrami"


@dataclass(frozen=True)
class Provenance:
    """The kind of a file's content (``positions`` or ``stencil``) and how it was computed.

    ``component`` is ``largest`` or ``all`` of the dataset, ``by`` the method and its parameters, for a reader, and
    ``space`` that of positions, ``flat`` or ``ball``.
    """

    kind: str
    dataset: str
    component: str
    by: str
    space: str = FLAT


@dataclass(frozen=True)
class Header:
    """The header of a file: its provenance, its graph (nodes and digest), and the digest of header and content."""

    made: Provenance
    nodes: int
    graph: str
    digest: str = ""

    def expected_digest(self, tensors: dict[str, Tensor]) -> str:
        """Return the digest of this header with the content ``tensors``."""
        return tensor_digest(tensors, name=json.dumps([asdict(self.made), self.nodes, self.graph], sort_keys=True))


def save_positions(path: Path, positions: Tensor, edges: Edges, made: Provenance) -> str:
    """Write positions, dense or sparse, of the nodes of ``edges``; return the file's digest."""
    tensors = {"dense": positions}
    if positions.layout != torch.strided:
        positions = positions.to_sparse_coo().coalesce()
        tensors = {"indices": positions.indices(), "values": positions.values(), "shape": torch.tensor(positions.shape)}
    return _save(path, tensors, edges, made)


def save_stencil(path: Path, mesh: Edges, edges: Edges, made: Provenance) -> str:
    """Write the graph ``mesh`` that a stencil made from ``edges``; return the file's digest."""
    tensors = {"edge_index": mesh.edge_index} | ({} if mesh.weight is None else {"weight": mesh.weight})
    return _save(path, tensors, edges, made)


def load_positions(path: Path, edges: Edges) -> tuple[Tensor, Provenance]:
    """Read a file of :func:`save_positions`; a :class:`DataError` unless it belongs to ``edges``."""
    tensors, header = _load(path, POSITIONS, edges)
    if "dense" in tensors:
        return tensors["dense"], header.made
    indices, values, shape = tensors["indices"], tensors["values"], tensors["shape"].tolist()
    positions = torch.sparse_coo_tensor(indices, values, shape, check_invariants=True, is_coalesced=True)
    return positions, header.made


def load_stencil(path: Path, edges: Edges) -> Edges:
    """Read a file of :func:`save_stencil`; a :class:`DataError` unless it was made from ``edges``."""
    tensors, _ = _load(path, STENCIL, edges)
    return Edges.build(tensors["edge_index"], num_nodes=edges.num_nodes, weight=tensors.get("weight"))


def read_header(path: Path, *, kind: str) -> Header:
    """Read the header of a file; a :class:`DataError` if the file is not of this kind."""
    return _read(path, kind)[1]


def graph_digest(edges: Edges) -> str:
    """Return the SHA-256 of a graph's edges and weights, independent of their input order."""
    return tensor_digest({"edge_index": edges.edge_index, "weight": edges.weight}, name="graph")


def _save(path: Path, tensors: dict[str, Tensor], edges: Edges, made: Provenance) -> str:
    from safetensors.torch import save

    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = Header(made, edges.num_nodes, graph_digest(edges))
    header = replace(header, digest=header.expected_digest(tensors))
    write_atomically(path, save(tensors, metadata={HEADER: json.dumps(asdict(header), sort_keys=True)}))
    return header.digest


def _load(path: Path, kind: str, edges: Edges) -> tuple[dict[str, Tensor], Header]:
    tensors, header = _read(path, kind, content=True)
    if header.digest != header.expected_digest(tensors):
        raise DataError(f"the {kind} file {path} is damaged: make it again with `beltrami {VERBS[kind]}`.")
    if (header.nodes, header.graph) != (edges.num_nodes, graph_digest(edges)):
        made = header.made
        raise DataError(
            f"the {kind} file {path} belongs to another graph ({made.dataset}, component {made.component}, "
            f"{header.nodes} nodes) than this one of {edges.num_nodes} nodes: run `beltrami {VERBS[kind]}` on this "
            "graph, or set `data.component` to the file's."
        )
    return tensors, header


def _read(path: Path, kind: str, *, content: bool = False) -> tuple[dict[str, Tensor], Header]:
    """Return the tensors of a file (none without ``content``) and its header, unverified."""
    from safetensors import SafetensorError, safe_open

    verb = VERBS[kind]
    try:
        with safe_open(path, framework="pt") as file:
            values = json.loads((file.metadata() or {})[HEADER])
            header = Header(**{**values, "made": Provenance(**values["made"])})
            names: list[str] = file.keys() if content else []
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in names}
    except FileNotFoundError:
        raise DataError(f"there is no {kind} file at {path}: `beltrami {verb}` writes one.") from None
    except OSError as error:
        raise DataError(f"the {kind} file {path} cannot be read ({error.strerror or error}).") from None
    except (SafetensorError, ValueError, TypeError, KeyError):
        raise DataError(f"{path} is not a {kind} file, or it is damaged: `beltrami {verb}` writes one.") from None
    if header.made.kind != kind:
        raise DataError(f"{path} is a {header.made.kind} file, not a {kind} file: `beltrami {verb}` writes those.")
    return tensors, header
