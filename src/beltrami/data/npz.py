"""npz: read the Amazon and Coauthor graphs from the archives of Shchur et al. (2018)."""

import hashlib
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from beltrami.data.dataset import Dataset, undirected
from beltrami.data.file import corrupt_file

ARRAYS: Mapping[str, type[np.generic]] = {
    "adj_data": np.float32,
    "adj_indices": np.int64,
    "adj_indptr": np.int64,
    "adj_shape": np.int64,
    "attr_data": np.float32,
    "attr_indices": np.int64,
    "attr_indptr": np.int64,
    "attr_shape": np.int64,
    "labels": np.int64,
}

# The errors of numpy and zipfile on files that are truncated, altered, or of another kind.
UNREADABLE = (OSError, EOFError, ValueError, TypeError, LookupError, RuntimeError, zipfile.BadZipFile, zlib.error)

Arrays = dict[str, NDArray[Any]]


def read_npz(path: Path, *, name: str, digest: str) -> Dataset:
    """Read one archive: x is 1 where a word occurs in a node's text, else 0; edges in both directions.

    Coauthor CS counts its words; as in all published results, only their occurrence is kept. Only the needed arrays are
    read, never a pickle; ``digest`` is the ``content_digest`` of the published ones, independent of the compression.
    """
    arrays = _load(path)
    if content_digest(arrays) != digest:
        raise corrupt_file(path, "its arrays are not the published ones")
    try:
        return _assemble(name, arrays)
    except ValueError as error:
        raise corrupt_file(path, str(error)) from error


def npz_digest(path: Path) -> str:
    """Return the ``content_digest`` of the archive at ``path``."""
    return content_digest(_load(path))


def content_digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of the names, types, shapes and values of the arrays."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name], dtype=np.dtype(ARRAYS[name]).newbyteorder("<"))
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _load(path: Path) -> Arrays:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name].astype(dtype) for name, dtype in ARRAYS.items()}
    except UNREADABLE as error:
        raise corrupt_file(path, str(error)) from error


def _assemble(name: str, arrays: Arrays) -> Dataset:
    from scipy.sparse import csr_array

    adjacency, words = (
        csr_array((arrays[f"{part}_data"], arrays[f"{part}_indices"], arrays[f"{part}_indptr"]), shape=tuple(shape))
        for part, shape in (("adj", arrays["adj_shape"]), ("attr", arrays["attr_shape"]))
    )
    x = torch.from_numpy((words > 0).astype(np.float32).toarray())
    edges = adjacency.tocoo()
    edge_index = torch.from_numpy(np.stack((edges.row, edges.col)).astype(np.int64))
    return Dataset(name, x, undirected(edge_index, num_nodes=x.shape[0]), torch.from_numpy(arrays["labels"]))
