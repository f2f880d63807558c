"""Disk caches of positions and of rewired graphs, so that each is computed once."""

import hashlib
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from beltrami.data.file import cache_folder, tensor_digest
from beltrami.data.store import (
    POSITIONS,
    STENCIL,
    Provenance,
    graph_digest,
    load_positions,
    load_stencil,
    save_positions,
    save_stencil,
)
from beltrami.errors import DataError
from beltrami.graph import Edges
from beltrami.position import Encoding
from beltrami.stencil import Stencil


def cached_positions(encoding: Encoding, edges: Edges, *, seed: int, folder: Path | None = None) -> Tensor:
    """Return ``encoding(edges, generator)`` with the generator at ``seed``, from its file if there is one.

    The file is named by :func:`position_key`, in ``folder``, by default ``positions`` below the cache folder. It is
    written atomically: processes that ask at once each compute it, and the last to finish replaces the file. A damaged
    file is computed again; a failed write is a warning.
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

    The file is named by a digest of ``z``, the graph, the kind of device and ``by``, a description of the stencil that
    changes whenever its result may. It lies in ``folder``, by default ``graphs`` below the cache folder. A damaged file
    is computed again; a failed write is a warning.
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


def _position_path(encoding: Encoding, edges: Edges, seed: int, folder: Path | None) -> tuple[Path, str]:
    folder = cache_folder() / "positions" if folder is None else folder
    key = position_key(encoding, edges, seed=seed)
    return folder / f"{type(encoding).__name__}-{key}.safetensors", key


def _read_positions(path: Path, key: str, edges: Edges) -> Tensor | None:
    """Return the positions in a file; None if it is missing, damaged or of another key."""
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
