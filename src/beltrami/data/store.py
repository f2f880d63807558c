"""Store: positions and rewired graphs in files of their own, each tied to the graph it was made of."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from beltrami.data.digest import tensor_digest
from beltrami.data.file import write_atomically
from beltrami.errors import DataError
from beltrami.graph import Edges

POSITIONS, STENCIL = "positions", "stencil"
FLAT, BALL = "flat", "ball"
VERBS = {POSITIONS: "encode", STENCIL: "rewire"}
HEADER = "beltrami"


@dataclass(frozen=True)
class Made:
    """What a file holds and of which graph.

    Args:
        kind: ``positions`` or ``stencil``.
        dataset: the name of the dataset.
        component: ``largest`` or ``all`` of it.
        by: the method and its parameters, for a reader.
        space: where positions live, ``flat`` or ``ball``.
    """

    kind: str
    dataset: str
    component: str
    by: str
    space: str = FLAT


@dataclass(frozen=True)
class Header:
    """What the head of a file says: how it was made, of which graph, and the digest of all this and the content."""

    made: Made
    nodes: int
    graph: str
    digest: str = ""

    def seal(self, tensors: dict[str, Tensor]) -> str:
        """The digest that it should have."""
        return tensor_digest(tensors, name=json.dumps([asdict(self.made), self.nodes, self.graph], sort_keys=True))


def save_positions(path: Path, positions: Tensor, edges: Edges, made: Made) -> str:
    """Write positions of the nodes of ``edges``, dense or sparse; returns the digest of the content."""
    return _save(path, pack_matrix(positions), edges, made)


def save_stencil(path: Path, mesh: Edges, edges: Edges, made: Made) -> str:
    """Write the graph that a stencil made of ``edges``; returns the digest of the content."""
    tensors = {"edge_index": mesh.edge_index} | ({} if mesh.weight is None else {"weight": mesh.weight})
    return _save(path, tensors, edges, made)


def load_positions(path: Path, edges: Edges) -> tuple[Tensor, Made]:
    """Positions from a file of :func:`save_positions`, refused unless they are those of ``edges``."""
    tensors, header = _load(path, POSITIONS, edges)
    return unpack_matrix(tensors), header.made


def load_stencil(path: Path, edges: Edges) -> Edges:
    """A rewired graph from a file of :func:`save_stencil`, refused unless it was made of ``edges``."""
    tensors, _ = _load(path, STENCIL, edges)
    return Edges.build(tensors["edge_index"], num_nodes=edges.num_nodes, weight=tensors.get("weight"))


def read_header(path: Path, *, kind: str) -> Header:
    """The head of a file; a :class:`DataError` says what is wrong with it."""
    return _read(path, kind)[1]


def graph_digest(edges: Edges) -> str:
    """SHA-256 of a graph's edges and their weights, whatever order they came in."""
    return tensor_digest({"edge_index": edges.edge_index, "weight": edges.weight}, name="graph")


def pack_matrix(matrix: Tensor) -> dict[str, Tensor]:
    """A dense or sparse matrix as the dense tensors that a file can hold."""
    here = matrix.detach().cpu()
    if here.layout == torch.strided:
        return {"dense": here.contiguous()}
    here = here.to_sparse_coo().coalesce()
    shape = torch.tensor(here.shape)
    return {"indices": here.indices().contiguous(), "values": here.values().contiguous(), "shape": shape}


def unpack_matrix(tensors: dict[str, Tensor]) -> Tensor:
    """The matrix of :func:`pack_matrix`."""
    if "dense" in tensors:
        return tensors["dense"]
    shape: list[int] = tensors["shape"].tolist()
    matrix: Tensor = torch.sparse_coo_tensor(
        tensors["indices"], tensors["values"], shape, check_invariants=True, is_coalesced=True
    )
    return matrix


def _save(path: Path, tensors: dict[str, Tensor], edges: Edges, made: Made) -> str:
    from safetensors.torch import save

    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = Header(made, edges.num_nodes, graph_digest(edges))
    header = replace(header, digest=header.seal(tensors))
    write_atomically(path, save(tensors, metadata={HEADER: json.dumps(asdict(header), sort_keys=True)}))
    return header.digest


def _load(path: Path, kind: str, edges: Edges) -> tuple[dict[str, Tensor], Header]:
    tensors, header = _read(path, kind, content=True)
    if header.digest != header.seal(tensors):
        raise DataError(f"the {kind} file {path} is damaged: make it again with `beltrami {VERBS[kind]}`.")
    if (header.nodes, header.graph) != (edges.num_nodes, graph_digest(edges)):
        made = header.made
        raise DataError(
            f"the {kind} file {path} is of another graph ({made.dataset}, component {made.component}, {header.nodes} "
            f"nodes) than this one of {edges.num_nodes} nodes: run `beltrami {VERBS[kind]}` on this one, or set "
            "`data.component` as it was there."
        )
    return tensors, header


def _read(path: Path, kind: str, *, content: bool = False) -> tuple[dict[str, Tensor], Header]:
    from safetensors import SafetensorError, safe_open

    verb = VERBS[kind]
    try:
        with safe_open(path, framework="pt") as file:
            header = _parse((file.metadata() or {})[HEADER])
            names: list[str] = file.keys() if content else []
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in names}
    except FileNotFoundError:
        raise DataError(f"there is no {kind} file at {path}: `beltrami {verb}` writes one.") from None
    except OSError as error:
        raise DataError(f"the {kind} file {path} cannot be read ({error.strerror or error}).") from None
    except (SafetensorError, ValueError, TypeError, KeyError):
        raise DataError(f"{path} is not a {kind} file, or it is damaged: `beltrami {verb}` writes one.") from None
    if header.made.kind != kind:
        raise DataError(f"{path} is a {header.made.kind} file and no {kind} file: `beltrami {verb}` writes those.")
    return tensors, header


def _parse(text: str) -> Header:
    values = json.loads(text)
    return Header(**{**values, "made": Made(**values["made"])})
