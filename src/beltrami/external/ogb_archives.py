"""The raw files of a large graph of the Open Graph Benchmark, which are npz archives, read in chunks."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from beltrami.data.array_file import Array
from beltrami.data.graph_folder import MOST_NODES
from beltrami.data.graph_table import DropLog, no_loops
from beltrami.data.npz_reader import ArchivedArray, open_npz_arrays
from beltrami.errors import DataError
from beltrami.external.edge_sort import EdgeSorter
from beltrami.external.ogb_files import RawGraph, RawRows

ARRAYS, LABEL = ("edge_index", "node_feat", "num_nodes_list", "num_edges_list"), "node_label"
DATA, LABELS = "data.npz", "node-label.npz"
CHUNK_BYTES = 1 << 23  # of a chunk, at most
COPIES = 16  # arrays of the size of a chunk that exist while edges are checked, doubled and sorted


class RawArchives(RawGraph):
    """The archives data.npz and node-label.npz of a folder; their headers are checked first.

    Args:
        raw: the folder.
        memory: the budget in bytes.
    """

    def __init__(self, raw: Path, *, memory: int) -> None:
        self.path, self.chunk = raw / DATA, min(CHUNK_BYTES, memory // COPIES)
        self.edge_index, self.node_feat, nodes, edges = open_npz_arrays(self.path, names=ARRAYS).values()
        self.node_label = open_npz_arrays(raw / LABELS, names=(LABEL,))[LABEL]
        self.num_nodes, self.listed_edges = _stated(nodes), _stated(edges)
        if not 0 < self.num_nodes <= MOST_NODES:
            raise DataError(f"{self.path} states {self.num_nodes} nodes: a graph folder has from 1 to {MOST_NODES}.")
        n, m = self.num_nodes, self.listed_edges
        _check(self.edge_index, [(2, m)], (np.int64, np.int32))
        _check(self.node_feat, [(n, max((1, *self.node_feat.shape[1:2])))], (np.float32, np.float16))
        _check(self.node_label, [(n, 1), (n,)], (np.float32, np.float64, np.float16, np.int64))

    def add_edges(self, sorter: EdgeSorter, log: DropLog, *, report: Callable[[int], None]) -> None:
        # Two streams of one member, senders and receivers: its first half is decompressed twice, and no copy of the
        # senders, of 13 GB for ogbn-papers100M, is needed on the disk.
        m, done = self.edge_index.shape[1], 0
        size = max(1, self.chunk // self.edge_index.dtype.itemsize)
        senders, receivers = (self.edge_index.chunks(k * m, (k + 1) * m, size=size) for k in range(2))
        for ends in map(np.stack, zip(senders, receivers, strict=True)):
            self._check_ends(ends, first=done)
            j, i = ends[:, no_loops(ends, log)]
            sorter.add_both(j, i)
            done += ends.shape[1]
            report(ends.shape[1])

    def features(self) -> RawRows:
        array = self.node_feat
        return RawRows(self.path, array.shape[1], array.dtype, self._rows(array))

    def labels(self) -> RawRows:
        return RawRows(self.node_label.path, 1, self.node_label.dtype, self._rows(self.node_label))

    def _rows(self, array: ArchivedArray) -> Iterator[Array]:
        width = int(np.prod(array.shape[1:], dtype=np.int64))
        rows = max(1, self.chunk // max(1, width * array.dtype.itemsize))
        for values in array.chunks(0, self.num_nodes * width, size=rows * width):
            yield values.reshape(-1, width)

    def _check_ends(self, ends: Array, *, first: int) -> None:
        if ends.min() < 0 or ends.max() >= self.num_nodes:
            end, k = np.argwhere((ends < 0) | (ends >= self.num_nodes))[0]
            found = f"edge {first + k} of edge_index names node {ends[end, k]}"
            raise DataError(f"{self.path}: {found}, and nodes run from 0 to {self.num_nodes - 1}.")


def _stated(array: ArchivedArray) -> int:
    """Return the number in an array of one integer."""
    if array.dtype.kind not in "iu" or int(np.prod(array.shape)) != 1:
        found = f"{array.dtype} of shape {array.shape}"
        raise DataError(f"{array.path}: {array.name} must hold the size of one graph, an integer; it is {found}.")
    (values,) = array.chunks(0, 1, size=1)
    return int(values[0])


def _check(array: ArchivedArray, shapes: list[tuple[int, ...]], types: tuple[DTypeLike, ...]) -> None:
    """Refuse an array that has none of these shapes or none of these types."""
    if array.shape not in shapes or array.dtype not in types:
        named = " or ".join(np.dtype(each).name for each in types)
        wanted = f"{' or '.join(map(str, shapes))} and type {named}"
        raise DataError(f"{array.path}: {array.name} has shape {array.shape} and type {array.dtype}, not {wanted}.")
