"""Compressed rows of edges that are given in any order, built in bounded memory."""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from beltrami.data.array_file import Array, new_array, new_array_file
from beltrami.data.graph_folder import MOST_NODES, finish_graph_folder, new_folder
from beltrami.external.record_sort import RecordSorter, run_starts

CHUNK = 1 << 20  # bytes that are copied, and entries that are summed, at once


class EdgeSorter:
    """Directed edges j -> i that are added in any order and written as the arrays of a graph folder.

    Edges are sorted by receiver i and sender j; of repeated edges the one with the largest weight is kept. An edge
    takes 8 bytes on the disk until the arrays are written, with a weight 12.

    Args:
        scratch: a folder for temporary files.
        folder: the folder of the arrays.
        num_nodes: nodes are numbered from 0 to ``num_nodes - 1``.
        weighted: whether edges have weights.
        memory: the budget in bytes.
    """

    def __init__(self, scratch: Path, folder: Path, *, num_nodes: int, weighted: bool = False, memory: int) -> None:
        if not 0 < num_nodes <= MOST_NODES:
            raise ValueError(f"a graph folder needs from 1 to {MOST_NODES} nodes; got {num_nodes}.")
        self.scratch, self.folder, self.num_nodes, self.weighted = scratch, folder, num_nodes, weighted
        payload = [("weight", np.float32)] if weighted else []
        self._sorter = RecordSorter(
            scratch / "edges", high=num_nodes**2, payload=payload, combine=_merged, memory=memory
        )

    def add(self, j: Array, i: Array, weight: Array | None = None) -> None:
        """Add edges from senders j (r,) to receivers i (r,), with weights (r,) where the graph is weighted."""
        if (weight is not None) != self.weighted:
            raise ValueError(f"`weight` must be given for a weighted graph and for no other; weighted={self.weighted}.")
        for name, ends in (("j", j), ("i", i)):
            if len(ends) and not (int(ends.min()) >= 0 and int(ends.max()) < self.num_nodes):
                raise ValueError(f"`{name}` must hold node numbers from 0 to {self.num_nodes - 1}.")
        key = i.astype(np.uint64) * np.uint64(self.num_nodes) + j.astype(np.uint64)
        self._sorter.add(key, **({} if weight is None else {"weight": weight}))

    def add_both(self, j: Array, i: Array, weight: Array | None = None) -> None:
        """Add edges in both directions."""
        self.add(j, i, weight)
        self.add(i, j, weight)

    def write(self) -> int:
        """Write ptr, index and, where edges have weights, weight to the folder, and return the number of edges."""
        path = self.folder
        types = {"index": np.dtype(np.int32), **({"weight": np.dtype(np.float32)} if self.weighted else {})}
        found = 0
        with new_array(path / "ptr.npy", shape=(self.num_nodes + 1,), dtype=np.int64) as ptr:
            with _columns(self.scratch, types) as files:
                for records in self._sorter.blocks():
                    i, j = np.divmod(records["key"], np.uint64(self.num_nodes))
                    files["index"].write(j.astype(np.int32).tobytes())
                    if self.weighted:
                        files["weight"].write(records["weight"].tobytes())
                    _count(ptr, i)
                    found += len(records)
            _accumulate(ptr)
        for name, dtype in types.items():
            _copy(self.scratch / name, path / f"{name}.npy", dtype=dtype, length=found)
        return found


@contextmanager
def new_graph_folder(path: Path, *, num_nodes: int, weighted: bool = False, memory: int) -> Iterator[EdgeSorter]:
    """Yield a sorter for the edges of a new folder; write the edges and ``graph.json`` if the block succeeds.

    Other arrays may be written to ``sorter.folder`` in the block.
    """
    with new_folder(path) as folder:
        sorter = EdgeSorter(folder.parent, folder, num_nodes=num_nodes, weighted=weighted, memory=memory)
        yield sorter
        finish_graph_folder(folder, num_nodes=num_nodes, num_edges=sorter.write())


@contextmanager
def _columns(scratch: Path, names: Iterable[str]) -> Iterator[Mapping[str, IO[bytes]]]:
    files = {name: (scratch / name).open("wb") for name in names}
    try:
        yield files
    finally:
        for file in files.values():
            file.close()


def _merged(records: Array) -> Array:
    """Return sorted records with one of each key, of the largest weight."""
    first = run_starts(records["key"])
    if len(first) == len(records):
        return records
    merged = records[first]
    if "weight" in (records.dtype.names or ()):
        merged["weight"] = np.maximum.reduceat(records["weight"], first)
    return merged


def _count(ptr: Array, i: Array) -> None:
    """Add the numbers of edges of ascending receivers to ``ptr[1:]``."""
    first = run_starts(i)
    ptr[i[first].astype(np.int64) + 1] += np.diff(first, append=len(i))


def _accumulate(ptr: Array) -> None:
    """Replace the numbers of edges by their cumulative sums, in chunks."""
    total = 0
    for start in range(0, len(ptr), CHUNK):
        part = ptr[start : start + CHUNK]
        np.cumsum(part, out=part)
        part += total
        total = int(part[-1])


def _copy(source: Path, path: Path, *, dtype: "np.dtype[np.generic]", length: int) -> None:
    """Copy raw values to a new array file, and delete them."""
    with new_array_file(path, shape=(length,), dtype=dtype) as out, source.open("rb") as file:
        shutil.copyfileobj(file, out, CHUNK)
    source.unlink()
