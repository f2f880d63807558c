"""Read tables of edges and join them to the nodes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from beltrami.data.graph_table import DropLog, clean_edges, node_numbers
from beltrami.data.roles import Roles, load_table, named, source_header, source_name, usual
from beltrami.data.table import UNNAMED, Column, DataTable, Words, floats, sort_names
from beltrami.data.table_reader import PARQUET, extension, read_table
from beltrami.errors import DataError

ENDS = (
    ("source", "target"),
    ("src", "dst"),
    ("src_id", "dst_id"),
    ("from", "to"),
    (":start_id", ":end_id"),
    ("~from", "~to"),
)
"""Usual names of the two ends of an edge, in lower case; without them the first two columns are the ends."""

WEIGHTS = ("weight", "w")


@dataclass(frozen=True, eq=False)
class EdgeRows:
    """The rows of an edge table: the words of the two ends, and the weight if there is one."""

    table: DataTable
    source: Words
    target: Words
    weight: Column | None
    roles: dict[str, str]

    @property
    def ids(self) -> list[str]:
        """The ids in use, in no particular order."""
        shared = self.source.names is self.target.names
        return self.source.names if shared else list({*self.source.names, *self.target.names})

    def sorted_ids(self) -> list[str]:
        """Return the ids in use, sorted: by value where all are numbers, else by letters."""
        return sort_names(Words(np.arange(len(self.ids)), self.ids)).names


def usual_ends(names: list[str]) -> tuple[str, str] | None:
    """Return the usual names of the two ends of an edge among ``names``, None if there are none."""
    pairs = ((usual(names, (source,)), usual(names, (target,))) for source, target in ENDS)
    return next(((source, target) for source, target in pairs if source and target), None)


def read_edges(edges: Any, roles: Roles) -> EdgeRows:
    """Read the ends and the weights of a table of edges.

    The first line of a text file is read as an edge, not as names, if it has no usual names and if its fields are
    numbers or its first two fields are ids of other rows.
    """
    names, place = source_header(edges, "edges"), source_name(edges, "edges")
    found, sure = edge_columns(names, roles, place=place)
    rows = edge_rows(load_table(edges, place, ids=list(found.values())[:2], only=list(found.values())), found)
    if sure or not isinstance(edges, Path) or extension(edges) in PARQUET or not _is_edge(names, rows):
        return rows
    stated, found = nameless_columns(names)
    return edge_rows(read_table(edges, ids=stated[:2], only=list(found.values()), names=stated), found)


def edge_columns(names: list[str], roles: Roles, *, place: str) -> tuple[dict[str, str], bool]:
    """Return the columns of source, target and weight, and whether the ends have usual names."""
    ends = usual_ends(names)
    first = [name for name in names if name != UNNAMED][:2]
    if ends is None and len(first) < 2:
        raise DataError(f"{place} has one column, {names[0]!r}: a table of edges needs two, source and target.")
    found = dict(zip(("source", "target"), ends or first, strict=True))
    weight = named((roles.weight,), names)[0] if roles.weight else usual(names, WEIGHTS)
    if weight and weight not in found.values():
        found["weight"] = weight
    return found, ends is not None


def nameless_columns(first: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return names for the columns of a file without a header, of which ``first`` is the first row, and their roles."""
    stated = ["source", "target", *(f"column {k}" for k in range(3, len(first) + 1))]
    found = {"source": "source", "target": "target"}
    if len(first) == 3 and floats(first[2:]) is not None:
        found["weight"] = stated[2]
    return stated, found


def join_edges(rows: EdgeRows, ids: list[str], log: DropLog, *, nodes: str) -> tuple[Tensor, Tensor | None]:
    """Return the undirected edges (2, m) between the nodes called ``ids`` and their weights (m,); see ``clean_edges``.

    Rows with an empty end, or with an end that is no node, are dropped; a table without any other rows is refused.
    """
    position = {name: k for k, name in enumerate(ids)}
    ends, kept = known_ends(rows, lambda words: node_numbers(words, position), log)
    if len(kept) and not kept.any():
        raise unjoined(rows, nodes=nodes, first=ids[0])
    weight = None if rows.weight is None else rows.weight.take(kept)
    return clean_edges(ends[:, kept], weight, rows=rows.table.take(kept), num_nodes=len(ids), log=log)


def known_ends(
    rows: EdgeRows, numbers: Callable[[Words], NDArray[np.int64]], log: DropLog
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the node numbers of both ends (2, rows), and which rows have two; the others are recorded as dropped.

    ``numbers`` maps words to node numbers, -1 for a missing or unknown word.
    """
    ends = np.stack([numbers(words) for words in (rows.source, rows.target)])
    empty = (rows.source.codes < 0) | (rows.target.codes < 0)
    unknown = (ends < 0).any(0) & ~empty

    def reason(row: int) -> str:
        pairs = zip((rows.source, rows.target), ends[:, row], strict=True)
        lacking = {f"{words.names[words.codes[row]]!r}": None for words, end in pairs if end < 0}
        return " and ".join(lacking) + (" are no nodes" if len(lacking) > 1 else " is no node")

    log.drop(rows.table, np.flatnonzero(empty), "edges with an empty end dropped", lambda _: "an end is empty")
    log.drop(rows.table, np.flatnonzero(unknown), "edges to unknown ids dropped", reason)
    return ends, ~(empty | unknown)


def unjoined(rows: EdgeRows, *, nodes: str, first: str) -> DataError:
    """Return the error for a table of edges without a row that joins two nodes."""
    example = next(iter(rows.ids), "")
    return DataError(
        f"no row of {rows.table.source} joins two nodes of {nodes}: the edges name ids such as {example!r}, the "
        f"nodes are called {first!r} and so on; name the id column of the nodes with `id`."
    )


def edge_rows(table: DataTable, found: dict[str, str]) -> EdgeRows:
    """Return the rows of a table by the columns of source, target and weight."""
    source, target = table.columns[found["source"]], table.columns[found["target"]]
    for name, column in ((found["source"], source), (found["target"], target)):
        if not isinstance(column, Words):
            raise DataError(f"{table.source}: the column {name!r} must hold ids, which are words or integers.")
    assert isinstance(source, Words)
    assert isinstance(target, Words)
    return EdgeRows(table, source, target, table.columns[found["weight"]] if "weight" in found else None, found)


def _is_edge(names: list[str], rows: EdgeRows) -> bool:
    """Whether the first line of a file is an edge and not a list of names."""
    return floats(names) is not None or {*names[:2]} <= {*rows.ids}
