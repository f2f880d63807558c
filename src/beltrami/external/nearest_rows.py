"""The nearest rows of every row of a matrix in a file, searched with faiss in bounded memory."""

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import torch

from beltrami.data.array_file import Array, new_array, open_array
from beltrami.errors import DataError
from beltrami.graph import Edges
from beltrami.memory import in_bytes
from beltrami.position import Progress
from beltrami.stencil import KNN

INDEX = "knn-index.npy"
EXACT = 20_000  # rows up to which all distances are computed where faiss is missing
PER_LIST = 40  # sampled rows for each list
LISTS = 1 << 13  # at most: more take longer to choose from than they save
PROBE = 8  # lists that are searched
ROW_BYTES = 24  # of memory for a row: its list and its place
COPIES = 8  # of the vectors of a group of lists, while they are compared
CHUNK = 1 << 14  # rows that are read at once


def write_nearest_rows(
    vectors: Array, out: Path, *, k: int, memory: int, probe: int = PROBE, progress: Progress | None = None
) -> Array:
    """Write the k nearest other rows of every row, nearest first, (n, k), int32, to knn-index.npy of a folder.

    Distances are Euclidean. faiss (``beltrami[approximate]``) divides the rows into lists by k-means on a sample. The
    vectors are copied to a file in the order of their lists, and the rows of each list are compared with the rows of
    the ``probe`` lists whose centres are nearest to its own; all lists make the search exact. Memory: 24 bytes a row,
    and the lists that are compared, by torch's number of threads. Up to 20,000 rows are searched exactly where faiss
    is missing.
    """
    n = len(vectors)
    if not 1 <= k < n:
        raise ValueError(f"`k` must be at least 1 and below the number of rows; got k={k}, {n} rows.")
    if probe < 1:
        raise ValueError(f"`probe` must be at least 1; got {probe}.")
    try:
        faiss = import_module("faiss")
    except ImportError:
        if n > EXACT:
            raise DataError(
                f"the nearest of {n} rows need faiss: install `beltrami[approximate]`; {EXACT} are searched without it."
            ) from None
        return _write_exact(vectors, out, k=k)
    if ROW_BYTES * n > memory:
        raise DataError(
            f"the nearest of {n} rows need {in_bytes(ROW_BYTES * n)} of memory, and {in_bytes(memory)} are allowed: "
            "give more with `--memory`."
        )
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".lists.") as scratch:
        lists = RowLists.of(faiss, vectors, Path(scratch), progress=progress)
        with new_array(out / INDEX, shape=(n, k), dtype=np.int32) as found:
            _search(faiss, lists, found, probe=probe, memory=memory, progress=progress)
    return open_array(out / INDEX)


@dataclass(frozen=True, eq=False)
class RowLists:
    """Rows divided into lists: ``vectors`` (n, d) in the order of their lists, which begin at ``ptr``.

    ``rows`` (n,) are the numbers of the rows in this order, ``centres`` (lists, d) the centres of the lists.
    """

    vectors: Array
    rows: Array
    ptr: Array
    centres: Array

    @staticmethod
    def of(faiss: Any, vectors: Array, scratch: Path, *, progress: Progress | None = None) -> "RowLists":
        """Divide the rows by k-means on a sample; the vectors are copied to a file."""
        n, channels = vectors.shape
        count = max(1, min(LISTS, int(4 * sqrt(n)), n // PER_LIST))
        size = min(n, PER_LIST * count)
        sample = np.sort(np.random.default_rng(0).choice(n, size, replace=False))
        faiss.omp_set_num_threads(torch.get_num_threads())
        means = faiss.Kmeans(channels, count, niter=10, seed=0, min_points_per_centroid=1)
        means.train(_floats(vectors, sample))
        nearest = np.empty(n, dtype=np.int32)
        for start in range(0, n, CHUNK):
            part = np.arange(start, min(start + CHUNK, n))
            nearest[part] = means.index.search(_floats(vectors, part), 1)[1][:, 0]
            if progress is not None:
                progress("lists of rows", int(part[-1]) + 1, n)
        ptr = np.concatenate(([0], np.bincount(nearest, minlength=count).cumsum()))
        rows = np.argsort(nearest, kind="stable").astype(np.int32)
        with new_array(scratch / "vectors.npy", shape=vectors.shape, dtype=np.float32) as copy:
            for start in range(0, n, CHUNK):
                copy[start : start + CHUNK] = vectors[rows[start : start + CHUNK]]
        return RowLists(open_array(scratch / "vectors.npy"), rows, ptr, means.centroids)

    def near(self, order: Array, *, least: int, probe: int) -> Array:
        """Return the first ``probe`` lists of an order, or more if these hold fewer than ``least`` rows."""
        sizes = (self.ptr[order + 1] - self.ptr[order]).cumsum()
        return order[: max(probe, int(np.searchsorted(sizes, least)) + 1)]

    def groups(self, chosen: Array, *, most: int) -> Iterator[Array]:
        """Yield the places of the rows of some lists, at most ``most`` at once."""
        places = np.concatenate([np.arange(self.ptr[each], self.ptr[each + 1]) for each in chosen])
        yield from np.split(places, range(most, len(places), most))


def _search(faiss: Any, lists: RowLists, found: Array, *, probe: int, memory: int, progress: Progress | None) -> None:
    """Write the nearest rows of all lists, one list at a time in each thread."""
    count, channels = lists.centres.shape
    threads, done = torch.get_num_threads(), [0]
    most = max(2 * found.shape[1], memory // (COPIES * 4 * channels * threads))
    _, orders = faiss.knn(lists.centres, lists.centres, count if probe >= count else min(count, 4 * probe))

    def one(number: int) -> None:
        faiss.omp_set_num_threads(1)  # of this thread
        members = np.arange(lists.ptr[number], lists.ptr[number + 1])
        order = orders[number]
        if len(order) < count and lists.ptr[order + 1].sum() - lists.ptr[order].sum() <= found.shape[1]:
            order = faiss.knn(lists.centres[number : number + 1], lists.centres, count)[1][0]
        chosen = lists.near(order, least=found.shape[1] + 1, probe=probe)
        for some in np.split(members, range(CHUNK, len(members), CHUNK)):
            if len(some):
                places = _nearest(faiss, lists, some, chosen, lists.centres[number], k=found.shape[1], most=most)
                found[lists.rows[some]] = lists.rows[places]
        done[0] += len(members)
        if progress is not None:
            progress("nearest rows", done[0], len(found))

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, range(count)))


def _nearest(faiss: Any, lists: RowLists, members: Array, chosen: Array, centre: Array, *, k: int, most: int) -> Array:
    """Return the places of the k nearest other rows, (r, k), among the rows of the chosen lists.

    Vectors are taken relative to the centre, so that distances within a list round little.
    """
    points = lists.vectors[members] - centre
    best, places = np.empty((len(members), 0), np.float32), np.empty((len(members), 0), np.int64)
    for group in lists.groups(chosen, most=most):
        distance, near = _compare(faiss, points, lists.vectors[group] - centre, members, group, k=k)
        best, places = np.concatenate((best, distance), 1), np.concatenate((places, near), 1)
        order = np.argsort(best, axis=1, kind="stable")[:, :k]
        best, places = np.take_along_axis(best, order, 1), np.take_along_axis(places, order, 1)
    return places


def _compare(faiss: Any, points: Array, others: Array, members: Array, group: Array, *, k: int) -> tuple[Array, Array]:
    """Return the squared distances and places of the k nearest of a group, by numba or else by faiss."""
    if find_spec("numba") is None:
        distance, near = faiss.knn(points, others, min(k + 1, len(group)))
        distance[group[near] == members[:, None]] = np.inf
        return distance, group[near]
    from beltrami.external.block_neighbours import nearest_in_block

    order = np.argsort(group)
    place = np.minimum(np.searchsorted(group, members, sorter=order), len(group) - 1)
    own = np.where(group[order[place]] == members, order[place], -1)
    distance, near = nearest_in_block(points, others, own, k=k)
    return distance, group[near]


def _write_exact(vectors: Array, out: Path, *, k: int) -> Array:
    n = len(vectors)
    none = Edges.build(torch.empty(2, 0, dtype=torch.int64), num_nodes=n)
    points = torch.from_numpy(_floats(vectors, np.arange(n)))
    j = KNN(k)(points, none).j.reshape(n, k)
    distance = (points[j] - points[:, None]).square().sum(-1)
    with new_array(out / INDEX, shape=(n, k), dtype=np.int32) as found:
        found[...] = j.gather(1, distance.argsort(stable=True)).numpy()
    return open_array(out / INDEX)


def _floats(vectors: Array, rows: Array) -> Array:
    """Return ascending rows in single precision and in memory; a value that is NaN or infinite is refused."""
    first, last = int(rows[0]), int(rows[-1])
    part = vectors[first : last + 1] if last - first + 1 == len(rows) else vectors[rows]
    points = np.ascontiguousarray(part, dtype=np.float32)
    if not np.isfinite(points).all():
        row = int(rows[np.flatnonzero(~np.isfinite(points).all(1))[0]])
        raise DataError(f"row {row} of the vectors has a value that is NaN or infinite: clean or impute it first.")
    return points
