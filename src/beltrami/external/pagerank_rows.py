"""Rows of personalised PageRank of a graph folder by push, in chunks of nodes, written to memory maps."""

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from beltrami.data.array_file import Array, new_array, open_array, zeros_file
from beltrami.data.file import make_folder
from beltrami.data.graph_folder import GraphFolder
from beltrami.errors import DataError
from beltrami.graph.pagerank.kernel import check_restart
from beltrami.position import Progress
from beltrami.scale.edge_blocks import BlockRange, row_ranges

ROWS = 4096  # of a chunk
CHECKED = 1 << 22  # edges that are checked at once
EDGE_BYTES = 64  # of memory for an edge while the entries of S are computed
ENTRIES, INDEX = "ppr-value.npy", "ppr-index.npy"


@dataclass(frozen=True, eq=False)
class PagerankRows:
    """The largest entries of each row of the PageRank kernel, descending: nodes (n, top) and values (n, top).

    Behind the last entry of a row come -1 and 0. ``reached`` is the mean number of nodes that a row reached.
    """

    index: Array
    value: Array
    reached: float


def write_pagerank_rows(
    folder: GraphFolder,
    out: Path,
    *,
    restart: float,
    top: int,
    tolerance: float,
    loops: float = 0.0,
    memory: int,
    progress: Progress | None = None,
) -> PagerankRows:
    r"""Write the ``top`` largest entries of every row of K to the files ppr-index.npy and ppr-value.npy of a folder.

    Lower bounds of the entries of :math:`K = \rho (I - (1 - \rho) S)^{-1}`, P + rho R of push with the given tolerance;
    see :mod:`beltrami.graph.pagerank.push`. A row takes at most :math:`\sqrt{d} / (\rho \varepsilon)` steps, whatever
    the size of the graph. Memory: 20 bytes a node, and a few MiB for each thread.

    Args:
        loops: the weight of a self-loop on every node; DIGL has 1.
    """
    check_restart(restart)
    for name, given in (("tolerance", tolerance), ("top", top)):
        if not given > 0:
            raise ValueError(f"`{name}` must be positive; got {given}.")
    if find_spec("numba") is None:
        raise ImportError("personalised PageRank by push needs numba: pip install beltrami[fast].")
    check_symmetric(folder, needed_by="personalised PageRank by push")
    shape = (folder.num_nodes, top)
    with (
        walk_arrays(folder, out, restart=restart, tolerance=tolerance, loops=loops, memory=memory) as graph,
        new_array(out / INDEX, shape=shape, dtype=np.int32) as index,
        new_array(out / ENTRIES, shape=shape, dtype=np.float32) as value,
    ):
        reached = push_rows(graph, index, value, restart=restart, progress=progress)
    return PagerankRows(open_array(out / INDEX), open_array(out / ENTRIES), reached / folder.num_nodes)


def push_rows(
    graph: tuple[Array, Array, Array, Array],
    index: Array,
    value: Array,
    *,
    restart: float,
    first: int = 0,
    progress: Progress | None = None,
) -> int:
    """Push from the nodes from ``first`` on, one for each row of the outputs, by torch's number of threads.

    Return the number of nodes reached in all rows.
    """
    from beltrami.graph.pagerank.hashed_push import push_top

    def chunk(start: int) -> int:
        rows = slice(start, start + ROWS)
        found = push_top(graph, first + start, index[rows], value[rows], restart=restart)
        if progress is not None:
            progress("PageRank rows", min(start + ROWS, len(index)), len(index))
        return found

    index, value = index.view(np.ndarray), value.view(np.ndarray)
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        return sum(pool.map(chunk, range(0, len(index), ROWS)))


@contextmanager
def walk_arrays(
    folder: GraphFolder, scratch: Path, *, restart: float, tolerance: float, loops: float, memory: int
) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Yield ptr, index, (1 - rho) S and the thresholds of push; arrays of the size of the edges are in files."""
    degree = weighted_degrees(folder, memory=memory) + loops
    root = np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0).astype(np.float32)
    threshold = (tolerance * np.sqrt(degree)).astype(np.float32)
    added = folder.num_nodes if loops else 0
    make_folder(scratch)
    with tempfile.TemporaryDirectory(dir=scratch, prefix=".walk.") as name:
        files = {"index": np.int32, "step": np.float32} if loops else {"step": np.float32}
        shape = (folder.num_edges + added,)
        arrays = {each: zeros_file(Path(name) / f"{each}.npy", shape=shape, dtype=t) for each, t in files.items()}
        for rows in edge_ranges(folder, most_edges=max(1, memory // EDGE_BYTES)):
            begin, end = rows.first, rows.last
            i, j, weight = edge_block(folder, rows)
            if loops:
                nodes = np.arange(rows.start, rows.stop)
                i, j = np.concatenate((i, nodes)), np.concatenate((j, nodes.astype(j.dtype)))
                weight = np.concatenate((weight, np.full(len(nodes), loops, np.float32)))
                order = np.argsort(i * folder.num_nodes + j)
                i, j, weight = i[order], j[order], weight[order]
                begin, end = begin + rows.start, end + rows.stop
                arrays["index"][begin:end] = j
            arrays["step"][begin:end] = np.float32(1 - restart) * (weight * root[i] * root[j])
        ptr = folder.ptr + np.arange(folder.num_nodes + 1) if loops else folder.ptr
        index = arrays.get("index", folder.index)
        yield tuple(each.view(np.ndarray) for each in (ptr, index, arrays["step"], threshold))  # type: ignore[misc]


def weighted_degrees(folder: GraphFolder, *, memory: int) -> Array:
    """Return the total weight of the edges that enter each node, (n,), float64."""
    if folder.weight is None:
        return np.diff(folder.ptr).astype(np.float64)
    degree = np.zeros(folder.num_nodes)
    for rows in edge_ranges(folder, most_edges=max(1, memory // EDGE_BYTES)):
        i, _, weight = edge_block(folder, rows)
        degree[rows.start : rows.stop] = np.bincount(i - rows.start, weights=weight, minlength=rows.stop - rows.start)
    return degree


def edge_ranges(folder: GraphFolder, *, most_edges: int) -> list[BlockRange]:
    """Return ranges of receiving nodes with at most ``most_edges`` edges; a single node may have more."""
    return row_ranges(folder.ptr, most_edges=most_edges, most_rows=folder.num_nodes)


def edge_block(folder: GraphFolder, rows: BlockRange) -> tuple[Array, Array, Array]:
    """Return receivers, senders and weights, one where there are none, of the edges of a range of rows."""
    i = np.repeat(np.arange(rows.start, rows.stop), np.diff(folder.ptr[rows.start : rows.stop + 1]))
    weights = folder.weight
    weight = np.ones(rows.num_edges, np.float32) if weights is None else np.asarray(weights[rows.first : rows.last])
    return i, np.asarray(folder.index[rows.first : rows.last]), weight


def check_symmetric(folder: GraphFolder, *, needed_by: str) -> None:
    """Refuse invalid edges, and a graph with an edge whose reverse is missing or has another weight.

    The sum of a random function of (i, j, weight) over all edges is compared with that of (j, i, weight): for a graph
    that is not symmetric they are equal with a probability of 2^-64.
    """
    folder.verify_edges()
    n, total = np.uint64(folder.num_nodes), 0
    for rows in edge_ranges(folder, most_edges=CHECKED):
        i, j, weight = edge_block(folder, rows)
        bits = weight.astype(np.float32).view(np.uint32).astype(np.uint64)
        i, j = i.astype(np.uint64), j.astype(np.uint64)
        total += int((_mixed(i * n + j, bits) - _mixed(j * n + i, bits)).sum(dtype=np.uint64))
    if total % 2**64:
        what = "needs both directions of every edge, with equal weights"
        remedy = "write the graph again with `beltrami convert`, which adds them"
        raise DataError(f"{folder.path} is directed, and {needed_by} {what}: {remedy}.")


def _mixed(key: Array, bits: Array) -> Array:
    """Return 64 bits without a pattern for each pair of numbers (splitmix64)."""
    mixed: Array = key * np.uint64(0x9E3779B97F4A7C15) + bits * np.uint64(0xD1B54A32D192ED03)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ np.right_shift(mixed, np.uint64(shift))) * np.uint64(factor)
    return np.bitwise_xor(mixed, np.right_shift(mixed, np.uint64(31)))
