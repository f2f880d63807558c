"""Read the Amazon and Coauthor graphs from npz archives (Shchur et al. 2018)."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from beltrami import file_limits as limits
from beltrami.data.dataset import Dataset, undirected
from beltrami.data.file import corrupt_file
from beltrami.data.npz_reader import UNREADABLE, Arrays, read_npz_arrays
from beltrami.errors import DataError

SPARSE = ("data", "indices", "indptr", "shape")  # the arrays of a sparse matrix
ARRAYS = (*(f"adj_{part}" for part in SPARSE), *(f"attr_{part}" for part in SPARSE), "labels")
CONTENT_DIGESTS = {
    "coauthor-cs": "152ee784c9b7cc675d2212ecf03921466e903a7340833bda067a1c7f2d69deb4",
    "computers": "c54408c3bb2068c118c0b9b5be4563ab43929409e9e1916b108d76c1bb44abc9",
    "photo": "aae0e12eeedfc47762d3e5df6544edaa27608f2de52ba63ab9d099067a0171d6",
}
"""The SHA-256 of the published arrays, independent of the compression of their archive."""


def read_npz(path: Path, *, name: str, digest: str) -> Dataset:
    """Read one archive, never a pickle: x is 1 where a word occurs in a node's text, else 0; edges in both directions.

    Coauthor CS counts its words; as in all published results, only their occurrence is kept. ``digest`` is the
    ``content_digest`` of the published arrays, independent of the compression.
    """
    arrays = _load(path)
    if content_digest(arrays) != digest:
        raise corrupt_file(path, "its arrays are not the published ones")
    try:
        return _assemble(name, arrays)
    except (ValueError, TypeError, DataError) as error:
        raise corrupt_file(path, str(error).rstrip(".")) from error


def npz_digest(path: Path) -> str:
    """Return the ``content_digest`` of the archive at ``path``."""
    return content_digest(_load(path))


def content_digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of the names, types, shapes and values of the arrays."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name], dtype=np.dtype(_dtype_of(name)).newbyteorder("<"))
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _load(path: Path) -> Arrays:
    try:
        found = read_npz_arrays(path, names=ARRAYS)
        return {name: found[name].astype(_dtype_of(name)) for name in ARRAYS}
    except UNREADABLE as error:
        raise corrupt_file(path, str(error).rstrip(".")) from error


def _dtype_of(name: str) -> type[np.generic]:
    return np.float32 if name.endswith("data") else np.int64


def _assemble(name: str, arrays: Arrays) -> Dataset:
    from scipy.sparse import csr_array

    adjacency, words = (
        csr_array(tuple(arrays[f"{name}_{part}"] for part in SPARSE[:3]), shape=tuple(arrays[f"{name}_shape"]))
        for name in ("adj", "attr")
    )
    for matrix in (adjacency, words):
        matrix.check_format(full_check=True)  # entries outside of the matrix would be written outside of its memory
    limits.check_memory(5 * words.shape[0] * words.shape[1], what="its matrix of words")
    x = torch.from_numpy((words > 0).astype(np.float32).toarray())
    edges = adjacency.tocoo()
    edge_index = torch.from_numpy(np.stack((edges.row, edges.col)).astype(np.int64))
    return Dataset(name, x, undirected(edge_index, num_nodes=x.shape[0]), torch.from_numpy(arrays["labels"]))
