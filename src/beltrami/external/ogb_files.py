"""The raw files of a graph of the Open Graph Benchmark that has compressed tables, read in chunks."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from beltrami.data.array_file import Array
from beltrami.data.graph_folder import MOST_NODES
from beltrami.data.graph_table import DropLog
from beltrami.data.roles import Roles
from beltrami.data.table import Numbers
from beltrami.data.table_reader import first_row, table_chunks
from beltrami.errors import DataError
from beltrami.external.edge_sort import EdgeSorter
from beltrami.external.id_table import IdRange, IdTable
from beltrami.external.streamed_edges import EdgeTable

EDGES, COUNT, FEATURES, LABELS = (f"{name}.csv.gz" for name in ("edge", "num-node-list", "node-feat", "node-label"))


@dataclass(frozen=True)
class RawRows:
    """Rows of numbers, one for each node, in ``chunks`` (rows, width) of the file ``path``."""

    path: Path
    width: int
    dtype: "np.dtype[np.generic]"
    chunks: Iterator[Array]


class RawGraph(ABC):
    """The raw files of a graph: its number of nodes, and of edges as listed if that is known, its edges and rows."""

    num_nodes: int
    listed_edges: int | None

    @abstractmethod
    def add_edges(self, sorter: EdgeSorter, log: DropLog, *, report: Callable[[int], None]) -> None:
        """Add both directions of every edge to a sorter, without self-loops; report the rows of every chunk."""

    @abstractmethod
    def features(self) -> RawRows | None:
        """Return the features, or None if there are none."""

    @abstractmethod
    def labels(self) -> RawRows | None:
        """Return one column of classes, NaN for a node without a class; None if the graph has no classes."""


class RawTables(RawGraph):
    """The tables edge.csv.gz and so on, without names of columns, of a folder.

    Args:
        raw: the folder.
        memory: the budget in bytes.
    """

    def __init__(self, raw: Path, *, memory: int) -> None:
        self.raw, self.memory = raw, memory
        self.num_nodes, self.listed_edges = _count(raw / COUNT), None

    def add_edges(self, sorter: EdgeSorter, log: DropLog, *, report: Callable[[int], None]) -> None:
        found = IdRange()
        found.count, found.low, found.high = self.num_nodes, 0, self.num_nodes - 1
        ids = IdTable(found, sorter.scratch, memory=self.memory)
        EdgeTable(self.raw / EDGES, Roles()).add_to(sorter, ids, log, nodes=self.raw.name, report=report)

    def features(self) -> RawRows | None:
        return self._rows(FEATURES)

    def labels(self) -> RawRows | None:
        return self._rows(LABELS)

    def _rows(self, name: str) -> RawRows | None:
        path = self.raw / name
        if not path.is_file():
            return None
        return RawRows(path, len(first_row(path)), np.dtype(np.float32), number_chunks(path))


def _count(path: Path) -> int:
    """Return the number of nodes in a table of this number alone."""
    values = np.concatenate([part.reshape(-1) for part in number_chunks(path)])
    if len(values) != 1 or not 0 < values[0] <= MOST_NODES or values[0] != np.floor(values[0]):
        found = ", ".join(f"{value:.15g}" for value in values[:3])
        raise DataError(f"{path} must hold the number of nodes of one graph, from 1 to {MOST_NODES}; it holds {found}.")
    return int(values[0])


def number_chunks(path: Path) -> Iterator[Array]:
    """Yield the numbers of a table without names, (rows, columns) in chunks."""
    names = [str(k) for k in range(len(first_row(path)))]
    if not names:
        raise DataError(f"{path} is empty or starts with an empty line: it must hold numbers.")
    for table in table_chunks(path, names=names):
        columns = [column.values for column in table.columns.values() if isinstance(column, Numbers)]
        if len(columns) < len(names):
            raise DataError(f"{table.where(0)} or below: {path.name} must hold numbers alone.")
        yield np.stack(columns, axis=1)
