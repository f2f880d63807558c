"""Positions kept on disk, so that an encoding is computed once."""

import hashlib
import json
import warnings
from pathlib import Path

import torch
from torch import Tensor

from beltrami.data.digest import tensor_digest
from beltrami.data.file import write_atomically
from beltrami.data.source import cache_folder
from beltrami.data.store import graph_digest, pack_matrix, unpack_matrix
from beltrami.graph import Edges
from beltrami.position import Encoding


def cached(encoding: Encoding, edges: Edges, *, seed: int, folder: Path | None = None) -> Tensor:
    """``encoding(edges, generator)`` with the generator at ``seed``, from its file where there is one.

    The file is named by :func:`position_key`, so that whatever the positions depend on asks for another file. It
    appears whole or not at all: processes that ask at once each compute it, and the last to finish puts its own in
    place. A file that is damaged is computed anew; one that cannot be written costs a warning.

    Args:
        encoding: what to compute.
        edges: the graph; the positions come on its device.
        seed: of the encoding's randomness; it is part of the key of every encoding.
        folder: where the files are; ``positions`` below the cache folder by default.
    """
    path, key = _place(encoding, edges, seed, folder)
    found = _read(path, key)
    if found is not None:
        return found.to(edges.device)
    positions = encoding(edges, torch.Generator().manual_seed(seed))
    if positions.layout != torch.strided:
        positions = positions.to_sparse_coo().coalesce()  # as the file would give them
    try:
        write_atomically(path, _pack(positions, key))
    except OSError as error:
        warnings.warn(
            f"positions could not be kept at {path} ({error.strerror or error}) and will be computed again: name "
            "another folder in BELTRAMI_CACHE.",
            stacklevel=2,
        )
    return positions


def is_cached(encoding: Encoding, edges: Edges, *, seed: int, folder: Path | None = None) -> bool:
    """Whether :func:`cached` would find the positions on disk."""
    return _read(*_place(encoding, edges, seed, folder)) is not None


def position_key(encoding: Encoding, edges: Edges, *, seed: int) -> str:
    """SHA-256 of all that positions depend on: the graph, the method with its version and parameters, the seed, and
    the kind of device, since each has its own random numbers."""
    asked = {
        "graph": graph_digest(edges),
        "nodes": edges.num_nodes,
        "encoding": encoding.describe(),
        "seed": seed,
        "device": edges.device.type,
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def _place(encoding: Encoding, edges: Edges, seed: int, folder: Path | None) -> tuple[Path, str]:
    folder = cache_folder() / "positions" if folder is None else folder
    key = position_key(encoding, edges, seed=seed)
    return folder / f"{type(encoding).__name__}-{key}.safetensors", key


def _pack(positions: Tensor, key: str) -> bytes:
    from safetensors.torch import save

    tensors = pack_matrix(positions)
    packed: bytes = save(tensors, metadata={"digest": tensor_digest(tensors, name=key)})
    return packed


def _read(path: Path, key: str) -> Tensor | None:
    """The positions in a file; None if there is no such file or it is not sound."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            names: list[str] = file.keys()
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in names}
    except (OSError, SafetensorError):
        return None
    if metadata.get("digest") != tensor_digest(tensors, name=key):
        return None
    return unpack_matrix(tensors)
