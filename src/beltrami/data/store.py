"""Files of positions and of rewired graphs, each bound by digest to its graph, and the caches made of them."""

import hashlib
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from beltrami import file_limits as limits
from beltrami.data.file import cache_folder, tensor_digest, write_atomically
from beltrami.errors import DataError
from beltrami.graph import Edges
from beltrami.position import Encoding
from beltrami.stencil import Stencil

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


def cached_positions(encoding: Encoding, edges: Edges, *, seed: int, folder: Path | None = None) -> Tensor:
    """Return ``encoding(edges, generator)`` with the generator at ``seed``, from its file if there is one.

    The file is named by :func:`position_key`, in ``folder``, by default ``positions`` below the cache folder. Processes
    that ask at once each compute it. A damaged file is computed again; a failed write is a warning.
    """
    path, key = _position_path(encoding, edges, seed, folder)
    found = _read_positions(path, key, edges)
    if found is not None:
        return found.to(edges.device)
    positions = encoding(edges, torch.Generator().manual_seed(seed))
    if positions.layout != torch.strided:
        positions = positions.to_sparse_coo().coalesce()  # as read from a file
    with _warning_if_unwritable("positions", path):
        save_positions(path, positions, edges, Provenance(POSITIONS, "", "", key))
    return positions


def positions_are_cached(encoding: Encoding, edges: Edges, *, seed: int, folder: Path | None = None) -> bool:
    """Return whether :func:`cached_positions` would read a file."""
    return _read_positions(*_position_path(encoding, edges, seed, folder), edges) is not None


def position_key(encoding: Encoding, edges: Edges, *, seed: int) -> str:
    """Return the SHA-256 of everything that positions depend on: the graph, the method with its version and parameters,
    the seed, and the kind of device, since each has its own random numbers."""
    graph = {"graph": graph_digest(edges), "nodes": edges.num_nodes, "device": edges.device.type}
    parts = {**graph, "encoding": encoding.describe(), "seed": seed}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def cached_stencil(stencil: Stencil, z: Tensor, edges: Edges, *, by: str, folder: Path | None = None) -> Edges:
    """Return ``stencil(z, edges)``, from its file if there is one.

    The file is named by a digest of ``z``, the graph, the kind of device and ``by``, a description of the stencil that
    changes whenever its result may, in ``folder``, by default ``graphs`` below the cache folder.
    """
    parts = [tensor_digest({"z": z}, name=by), graph_digest(edges), str(edges.num_nodes), edges.device.type]
    folder = cache_folder() / "graphs" if folder is None else folder
    path = folder / f"{hashlib.sha256(' '.join(parts).encode()).hexdigest()}.safetensors"
    try:
        return load_stencil(path, edges.to("cpu")).to(edges.device)
    except DataError:
        found = stencil(z, edges)
    with _warning_if_unwritable("a graph", path):
        save_stencil(path, found.to("cpu"), edges.to("cpu"), Provenance(STENCIL, "", "", by))
    return found


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
        its = f"{header.made.dataset}, component {header.made.component}, {header.nodes} nodes"
        raise DataError(
            f"the {kind} file {path} belongs to another graph ({its}) than this one of {edges.num_nodes} nodes: run "
            f"`beltrami {VERBS[kind]}` on this graph, or set `data.component` to the file's."
        )
    return tensors, header


def _read(path: Path, kind: str, *, content: bool = False) -> tuple[dict[str, Tensor], Header]:
    """Return the tensors of a file (none without ``content``) and its header, unverified."""
    from safetensors import SafetensorError, safe_open

    verb = VERBS[kind]
    try:
        limits.check_safetensors(path)
        with safe_open(path, framework="pt") as file:
            values = json.loads((file.metadata() or {})[HEADER])
            header = Header(**{**values, "made": Provenance(**values["made"])})
            tensors = {name: file.get_tensor(name) for name in (file.keys() if content else [])}
    except FileNotFoundError:
        raise DataError(f"there is no {kind} file at {path}: `beltrami {verb}` writes one.") from None
    except OSError as error:
        raise DataError(f"the {kind} file {path} cannot be read ({error.strerror or error}).") from None
    except (SafetensorError, DataError, ValueError, TypeError, KeyError):
        raise DataError(f"{path} is not a {kind} file, or it is damaged: `beltrami {verb}` writes one.") from None
    if header.made.kind != kind:
        raise DataError(f"{path} is a {header.made.kind} file, not a {kind} file: `beltrami {verb}` writes those.")
    return tensors, header


def _position_path(encoding: Encoding, edges: Edges, seed: int, folder: Path | None) -> tuple[Path, str]:
    folder = cache_folder() / "positions" if folder is None else folder
    key = position_key(encoding, edges, seed=seed)
    return folder / f"{type(encoding).__name__}-{key}.safetensors", key


def _read_positions(path: Path, key: str, edges: Edges) -> Tensor | None:
    """Return None for a file that is missing, damaged or of another key."""
    try:
        positions, made = load_positions(path, edges)
    except DataError:
        return None
    return positions if made.by == key else None


@contextmanager
def _warning_if_unwritable(what: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = f"could not be cached at {path} ({error.strerror or error}) and will be computed again"
        warnings.warn(f"{what} {reason}: name another folder in BELTRAMI_CACHE.", stacklevel=4)
