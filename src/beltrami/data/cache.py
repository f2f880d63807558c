"""Disk caches of positions and of rewired graphs, so that each is computed once."""

import hashlib
import json
import warnings
from pathlib import Path

import torch
from torch import Tensor

from beltrami.data.file import cache_folder, tensor_digest, write_atomically
from beltrami.data.store import (
    STENCIL,
    Provenance,
    graph_digest,
    load_stencil,
    pack_matrix,
    save_stencil,
    unpack_matrix,
)
from beltrami.errors import DataError
from beltrami.graph import Edges
from beltrami.position import Encoding
from beltrami.stencil import Stencil


def cached_positions(encoding: Encoding, edges: Edges, *, seed: int, folder: Path | None = None) -> Tensor:
    """Return ``encoding(edges, generator)`` with the generator at ``seed``, from its file if there is one.

    The file is named by :func:`position_key`. It is written atomically: processes that ask at once each compute it,
    and the last to finish replaces the file. A damaged file is computed again; a failed write is a warning.

    Args:
        encoding: the encoding.
        edges: the graph; the positions are on its device.
        seed: the encoding's random seed; part of the key of every encoding.
        folder: the folder of the files; ``positions`` below the cache folder by default.
    """
    path, key = _position_path(encoding, edges, seed, folder)
    found = _read_positions(path, key)
    if found is not None:
        return found.to(edges.device)
    positions = encoding(edges, torch.Generator().manual_seed(seed))
    if positions.layout != torch.strided:
        positions = positions.to_sparse_coo().coalesce()  # as read from a file
    try:
        write_atomically(path, _pack_positions(positions, key))
    except OSError as error:
        _warn_unwritable("positions", path, error)
    return positions


def positions_are_cached(encoding: Encoding, edges: Edges, *, seed: int, folder: Path | None = None) -> bool:
    """Return whether :func:`cached_positions` would read a file."""
    return _read_positions(*_position_path(encoding, edges, seed, folder)) is not None


def position_key(encoding: Encoding, edges: Edges, *, seed: int) -> str:
    """Return the SHA-256 of everything that positions depend on: the graph, the method with its version and parameters,
    the seed, and the kind of device, since each has its own random numbers."""
    parts = {
        "graph": graph_digest(edges),
        "nodes": edges.num_nodes,
        "encoding": encoding.describe(),
        "seed": seed,
        "device": edges.device.type,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def cached_stencil(stencil: Stencil, z: Tensor, edges: Edges, *, by: str, folder: Path | None = None) -> Edges:
    """Return ``stencil(z, edges)``, from its file if there is one.

    The file is named by a digest of ``z``, the graph, the kind of device and ``by``. A damaged file is computed again;
    a failed write is a warning.

    Args:
        stencil: the stencil.
        z: the state or features that it looks at.
        edges: the input graph; the result is on its device.
        by: a description of the stencil that changes whenever its result may.
        folder: the folder of the files; ``graphs`` below the cache folder by default.
    """
    parts = [tensor_digest({"z": z}, name=by), graph_digest(edges), str(edges.num_nodes), edges.device.type]
    folder = cache_folder() / "graphs" if folder is None else folder
    path = folder / f"{hashlib.sha256(' '.join(parts).encode()).hexdigest()}.safetensors"
    try:
        return load_stencil(path, edges.to("cpu")).to(edges.device)
    except DataError:
        found = stencil(z, edges)
    try:
        save_stencil(path, found.to("cpu"), edges.to("cpu"), Provenance(STENCIL, "", "", by))
    except OSError as error:
        _warn_unwritable("a graph", path, error)
    return found


def _position_path(encoding: Encoding, edges: Edges, seed: int, folder: Path | None) -> tuple[Path, str]:
    folder = cache_folder() / "positions" if folder is None else folder
    key = position_key(encoding, edges, seed=seed)
    return folder / f"{type(encoding).__name__}-{key}.safetensors", key


def _pack_positions(positions: Tensor, key: str) -> bytes:
    from safetensors.torch import save

    tensors = pack_matrix(positions)
    packed: bytes = save(tensors, metadata={"digest": tensor_digest(tensors, name=key)})
    return packed


def _read_positions(path: Path, key: str) -> Tensor | None:
    """Return the positions in a file; None if it is missing or damaged."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            names: list[str] = file.keys()
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in names}
    except (OSError, SafetensorError):
        return None
    return unpack_matrix(tensors) if metadata.get("digest") == tensor_digest(tensors, name=key) else None


def _warn_unwritable(what: str, path: Path, error: OSError) -> None:
    warnings.warn(
        f"{what} could not be cached at {path} ({error.strerror or error}) and will be computed again: name another "
        "folder in BELTRAMI_CACHE.",
        stacklevel=3,
    )
