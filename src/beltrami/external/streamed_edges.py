"""Tables of edges read in chunks: the edges between known nodes, and the nodes of a table of edges alone."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from beltrami.data.array_file import Array
from beltrami.data.edge_reader import EdgeRows, edge_columns, edge_rows, known_ends, nameless_columns, unjoined
from beltrami.data.graph_table import DropLog, proper_edges
from beltrami.data.roles import Roles
from beltrami.data.table import floats
from beltrami.data.table_reader import PARQUET, extension, read_header, table_chunks
from beltrami.errors import DataError
from beltrami.external.edge_sort import EdgeSorter
from beltrami.external.id_table import IdRange, IdTable, integer_ids
from beltrami.external.record_sort import RecordSorter, run_starts
from beltrami.external.streamed_nodes import write_ids

IDS = 1 << 16  # ids that are read at once


class EdgeTable:
    """A table of edges and its columns.

    The first line of a text file is an edge, not a list of names, if it has no usual names and if its fields are
    numbers or, once :meth:`settle` was called, if its first two fields are ids of nodes.
    """

    def __init__(self, path: Path, roles: Roles) -> None:
        self.path, self.header = path, read_header(path)
        self.columns, self.sure = edge_columns(self.header, roles, place=path.name)
        self.names: list[str] | None = None
        self.settle(lambda names: floats(self.header) is not None)

    def settle(self, are_ids: Callable[[list[str]], bool]) -> None:
        """Decide whether the first line is an edge: ``are_ids`` says whether its first two fields are ids."""
        if not self.sure and extension(self.path) not in PARQUET and are_ids(self.header[:2]):
            self.names, self.columns = nameless_columns(self.header)

    @property
    def weighted(self) -> bool:
        return "weight" in self.columns

    def chunks(self) -> Iterator[EdgeRows]:
        """Yield the rows in chunks."""
        columns = list(self.columns.values())
        for table in table_chunks(self.path, ids=columns[:2], only=columns, names=self.names):
            yield edge_rows(table, self.columns)

    def add_to(
        self, sorter: EdgeSorter, ids: IdTable, log: DropLog, *, nodes: str, report: Callable[[int], None]
    ) -> None:
        """Add both directions of every edge between two nodes to a sorter; a table without one is refused."""
        joined, rows = 0, None
        for rows in self.chunks():
            ends, kept = known_ends(rows, ids.numbers, log)
            weight = None if rows.weight is None else rows.weight.take(kept)
            (j, i), values = proper_edges(ends[:, kept], weight, rows=rows.table.take(kept), log=log)
            sorter.add_both(j, i, None if values is None else values.astype(np.float32))
            joined += int(kept.sum())
            report(len(kept))
        if rows is not None and not joined:
            raise unjoined(rows, nodes=nodes, first=ids.first)


class EdgeEnds:
    """The nodes of a table of edges without a table of nodes: the integers that the edges name, ascending."""

    def __init__(self, edges: EdgeTable, scratch: Path, *, memory: int) -> None:
        self.edges, self.scratch, self.memory, self.ids = edges, scratch, memory, IdRange()

    def check(self) -> None:
        """Read the table twice: find the range of the ids, and sort them."""
        seen = IdRange()
        for rows in self.edges.chunks():
            seen.add(rows.ids)
            if not seen.integers:
                word = next(name for name in rows.ids if integer_ids([name]) is None)
                raise DataError(
                    f"{self.edges.path.name} names ids that are no 64-bit integers, such as {word!r}: give a table of "
                    "nodes with `--nodes`."
                )
        if not seen.count:
            raise DataError(f"{self.edges.path.name} has no edges: at least one row is needed.")
        sorter = RecordSorter(
            self.scratch / "ends", high=seen.high - seen.low + 1, combine=_distinct, memory=self.memory
        )
        for rows in self.edges.chunks():
            values = integer_ids(rows.ids)
            assert values is not None
            sorter.add(values.astype(np.uint64) - np.uint64(seen.low % 2**64))
        with (self.scratch / "sorted-ends").open("wb") as file:
            for records in sorter.blocks():
                (records["key"] + np.uint64(seen.low % 2**64)).astype(np.int64).tofile(file)
        for names in self._names():
            self.ids.add(names)

    def write(self, folder: Path) -> Iterator[list[str]]:
        """Write ids.csv with the id of each node to a folder; yield the ids in chunks."""
        with (folder / "ids.csv").open("w", encoding="utf-8", newline="") as file:
            file.write("id\n")
            for names in self._names():
                write_ids(file, names)
                yield names

    def _names(self) -> Iterator[list[str]]:
        with (self.scratch / "sorted-ends").open("rb") as file:
            while len(values := np.fromfile(file, np.int64, IDS)):
                yield [str(value) for value in values.tolist()]


def _distinct(records: Array) -> Array:
    return records[run_starts(records["key"])]
