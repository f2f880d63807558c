"""Rows of features that are diffused once, at several times, and kept in files beside their graph."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from beltrami.arguments import checked
from beltrami.data.array_file import Array, find_array, new_array, open_array
from beltrami.data.file import cache_folder, file_digest, write_atomically
from beltrami.data.graph_folder import GraphFolder, check_finite_rows
from beltrami.errors import DataError
from beltrami.file_limits import read_json
from beltrami.scale.diffuse import diffuse_columns

SCHEMA = 1
ROWS = "rows.json"  # written last, when all arrays of a folder are there
STATISTICS = "statistics.npy"
CHUNK_BYTES = 1 << 26  # of features that are read at once
DIFFUSED_OF = ("ptr", "index", "weight", "x")  # the arrays that diffused features depend on
_DIGESTS: WeakKeyDictionary[GraphFolder, dict[str, str]] = WeakKeyDictionary()  # of files by the names of arrays


@dataclass(frozen=True, eq=False)
class DiffusedRows:
    r"""The matrices :math:`e^{t (P - I)} X`, (n, f), at increasing times, as memory maps.

    ``bound``: of the truncation error of an entry, relative to the largest value of its column of X. ``mean`` and
    ``scale`` (f,): the mean and the standard deviation of each column of X over all nodes, 1 for a constant column.
    """

    times: tuple[float, ...]
    arrays: tuple[Array, ...]
    bound: float
    mean: Tensor
    scale: Tensor

    @property
    def num_nodes(self) -> int:
        return len(self.arrays[0])

    @property
    def num_features(self) -> int:
        return int(self.arrays[0].shape[1])

    def read(self, nodes: Array | slice) -> Tensor:
        """Return the rows of some nodes at all times, (len(times), k, f); ascending indices are read fastest."""
        dtype = np.float64 if any(array.dtype == np.float64 for array in self.arrays) else np.float32
        count = len(range(*nodes.indices(self.num_nodes))) if isinstance(nodes, slice) else len(nodes)
        out = np.empty((len(self.times), count, self.num_features), dtype=dtype)
        for part, array in zip(out, self.arrays, strict=True):
            part[...] = array[nodes] if isinstance(nodes, slice) else np.take(array, nodes, axis=0)
        return torch.from_numpy(out)


@checked
def diffuse_rows(
    graph: GraphFolder, *, times: Sequence[float], rtol: float, memory: int | None = None, device: str = "cpu"
) -> DiffusedRows:
    """Return the diffused features of a graph folder; they are computed once and then read from their files.

    The files are in ``diffused/KEY`` of the graph folder, or of the cache folder if that cannot be written. The key is
    the SHA-256 of graph, features, times and tolerance, for which the files of the graph are read once.

    Args:
        graph: a folder with features.
        times: increasing, at least 0; at time 0 the rows are the features themselves, which are not copied.
        rtol: the error of an entry, relative to the largest value of its column.
        memory: bytes that the flow may use on the device; None for most of the free memory.
    """
    if graph.x is None or not graph.num_features:
        raise DataError(f"{graph.path} has no features to diffuse: write them as x.npy, (nodes, features).")
    if not times or list(times) != sorted(set(times)) or not 0 <= times[0] <= times[-1] < float("inf"):
        raise ValueError(f"`times` must be increasing, finite and at least 0; got {', '.join(map(str, times))}.")
    times, key = tuple(map(float, times)), _key(graph, times, rtol)
    place = (graph.path if os.access(graph.path, os.W_OK) else cache_folder()) / "diffused" / key[:32]
    found = _read(place, graph.x, times)
    if found is not None:
        return found
    later = [t for t in times if t > 0]
    statistics = _statistics(graph.x, graph.path)
    with new_array(place / STATISTICS, shape=statistics.shape, dtype=statistics.dtype) as out:
        out[...] = statistics
    bound, files = 0.0, [_file(place, t) for t in later]
    if later:
        bound = diffuse_columns(graph, graph.x, times=later, out=files, rtol=rtol, memory=memory, device=device)
    write_atomically(place / ROWS, json.dumps({"schema": SCHEMA, "times": times, "bound": bound}).encode())
    return _opened(place, graph.x, times, bound)


def graph_digest(graph: GraphFolder, names: Sequence[str]) -> str:
    """Return the SHA-256 of the sizes of an open graph folder and of the files of the named arrays that it has; each
    file is read once."""
    known = _DIGESTS.setdefault(graph, {})
    total = hashlib.sha256(f"{graph.num_nodes} {graph.num_edges}".encode())
    for name in names:
        path = find_array(graph.path, name)
        if path is not None:
            if name not in known:
                known[name] = file_digest(path)
            total.update(f"; {path.name} {known[name]}".encode())
    return total.hexdigest()


def _key(graph: GraphFolder, times: Sequence[float], rtol: float) -> str:
    text = f"{SCHEMA} {graph_digest(graph, DIFFUSED_OF)} {json.dumps(list(times))} {rtol!r}"
    return hashlib.sha256(text.encode()).hexdigest()


def _file(place: Path, time: float) -> Path:
    return place / f"t={time:g}.npy"


def _read(place: Path, x: Array, times: tuple[float, ...]) -> DiffusedRows | None:
    """Return the rows in a folder; None if they are not there, or not all."""
    try:
        header = json.loads(read_json(place / ROWS))
        if header["schema"] != SCHEMA or header["times"] != list(times):
            return None
        return _opened(place, x, times, float(header["bound"]))
    except (FileNotFoundError, DataError, KeyError, TypeError, ValueError):
        return None


def _opened(place: Path, x: Array, times: tuple[float, ...], bound: float) -> DiffusedRows:
    arrays = tuple(open_array(_file(place, t)) if t > 0 else x for t in times)
    if any(array.shape != x.shape for array in arrays):
        raise DataError(f"{place} holds arrays of another graph: delete it.")
    mean, scale = torch.from_numpy(np.array(open_array(place / STATISTICS)))
    return DiffusedRows(times, arrays, bound, mean, scale)


def _statistics(x: Array, path: Path) -> Array:
    """Return mean and standard deviation of the columns, (2, f), read in chunks; refuse values that are not finite."""
    n, f = x.shape
    mean, squares, rows = np.zeros(f), np.zeros(f), max(1, CHUNK_BYTES // (8 * f))
    for start in range(0, n, rows):
        block = np.asarray(x[start : start + rows], dtype=np.float64)
        check_finite_rows(block, first=start, name=f"x of {path}")
        change, share = block.mean(0) - mean, len(block) / (start + len(block))
        squares += ((block - block.mean(0)) ** 2).sum(0) + change**2 * start * share
        mean += change * share
    deviation = np.sqrt(squares / max(1, n))
    return np.stack((mean, np.where(deviation > 0, deviation, 1.0)))
