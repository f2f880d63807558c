"""Tables of nodes and edges converted to graph folders in bounded memory, by the rules of ``read_graph``."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from beltrami.data.file import write_atomically
from beltrami.data.graph_folder import GraphFolder, is_graph_folder, scratch_folder
from beltrami.data.graph_table import DropLog
from beltrami.data.roles import Roles
from beltrami.data.table_reader import PARQUET, TEXT, extension
from beltrami.errors import DataError
from beltrami.external.edge_sort import new_graph_folder
from beltrami.external.id_table import IdTable
from beltrami.external.streamed_edges import EdgeEnds, EdgeTable
from beltrami.external.streamed_nodes import NodeTable
from beltrami.position import Progress

NAMES = "names.json"


@dataclass(frozen=True, eq=False)
class Converted:
    """A graph folder that was written, and the rows that were dropped or changed by the rules."""

    folder: GraphFolder
    log: DropLog


def convert_tables(
    nodes: Path | None, edges: Path, out: Path, *, roles: Roles, memory: int, progress: Progress | None = None
) -> Converted:
    """Convert a table of edges, and one of nodes, to a new graph folder.

    Tables are CSV, TSV, edge lists or Parquet; text may be compressed by gzip. They are read in chunks. Nodes are
    numbered in the order of their table; without one they are the integers that the edges name, ascending. Both
    directions of every edge are written, repeated edges once with the largest weight, self-loops and rows with unknown
    ids not at all; see docs/own-graphs.md. ``names.json`` holds the names of features and classes, ``ids.csv`` the ids.
    """
    if nodes is None and (roles.label or roles.id or roles.features or roles.split):
        raise ValueError("without a table of nodes leave out `--label`, `--id`, `--features` and `--split-column`.")
    log, table, report = DropLog(), EdgeTable(edges, roles), row_counter("rows of nodes", None, progress)
    with scratch_folder(out) as scratch:
        source = EdgeEnds(table, scratch, memory=memory) if nodes is None else NodeTable(nodes, roles, log)
        source.check()
        ids = IdTable(source.ids, scratch, memory=memory)
        (scratch / "arrays").mkdir()
        for names in source.write(scratch / "arrays"):
            ids.add(names)
            report(len(names))
        place = edges.name if nodes is None else nodes.name
        ids.finish(source=place)
        if isinstance(source, NodeTable):
            table.settle(lambda first: bool((ids.lookup(first) >= 0).all()))
            content = {"features": source.features, "classes": source.classes}
            write_atomically(scratch / "arrays" / NAMES, json.dumps(content).encode())
        with new_graph_folder(out, num_nodes=source.ids.count, weighted=table.weighted, memory=memory) as sorter:
            table.add_to(sorter, ids, log, nodes=place, report=row_counter("rows of edges", None, progress))
            for file in (scratch / "arrays").iterdir():
                file.rename(sorter.folder / file.name)
    return Converted(GraphFolder.open(out), log)


def row_counter(what: str, total: int | None, progress: Progress | None) -> Callable[[int], None]:
    """Return a function that takes numbers of rows and passes their sum to ``progress``."""
    done = 0

    def report(rows: int) -> None:
        nonlocal done
        done += rows
        if progress is not None:
            progress(what, done, total)

    return report


def find_tables(folder: Path) -> tuple[Path | None, Path]:
    """Return the tables nodes.* and edges.* of a folder; the first may be missing."""
    if not folder.is_dir():
        fault = f"{folder} is a file" if folder.exists() else f"there is no folder {folder}"
        raise DataError(f"{fault}: name a folder with nodes.* and edges.*, or a dataset.")
    if is_graph_folder(folder):
        raise DataError(f"{folder} is a graph folder already: train on it, or name a folder with tables.")
    found = dict[str, Path]()
    for path in sorted(folder.iterdir()):
        stem = path.name.lower().partition(".")[0]
        if path.is_file() and stem in ("nodes", "edges") and extension(path) in (*TEXT, *PARQUET):
            if stem in found:
                raise DataError(f"{folder} has both {found[stem].name} and {path.name}: remove one.")
            found[stem] = path
    if "edges" not in found:
        raise DataError(f"{folder} has no table of edges, edges.*, with one of {', '.join((*TEXT, *PARQUET))}.")
    return found.get("nodes"), found["edges"]
