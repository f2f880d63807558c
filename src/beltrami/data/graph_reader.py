"""Read a user's graph: tables of nodes and edges, a folder, GraphML, npz, networkx, PyG `Data` or data frames."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from beltrami.arguments import checked
from beltrami.data.edge_reader import join_edges, read_edges, usual_ends
from beltrami.data.graph_object import (
    NODE_KEY,
    graph_from_arrays,
    read_graphml,
    read_npz,
    tables_from_networkx,
)
from beltrami.data.graph_table import DropLog, GraphTable
from beltrami.data.node_reader import read_nodes
from beltrami.data.roles import Roles, source_name
from beltrami.data.table import floats
from beltrami.data.table_reader import PARQUET, TEXT, read_header
from beltrami.errors import DataError

TABLES = (*TEXT, *PARQUET)
ARCHIVES = (".graphml", ".npz")


@checked
def read_graph(
    source: Any = None,
    *,
    nodes: Any = None,
    edges: Any = None,
    label: str | Sequence[str] | None = None,
    id: str | None = None,
    features: str | Sequence[str] | None = None,
    weight: str | None = None,
    split: str | None = None,
) -> GraphTable:
    """Read a graph from ``source``, or from a table of ``nodes``, a table of ``edges``, or both.

    Directions are dropped, repeated edges count once with the largest weight, self-loops and edges of weight zero are
    removed, rows without an id or with an unknown one are dropped and recorded; see :class:`GraphTable`.

    Args:
        source: a folder (``nodes.*`` and ``edges.*``, or one GraphML or npz file), a file, a networkx graph, a PyG
            ``Data``, or a frame of nodes. A single table is read as edges if it has the usual names of their ends, the
            extension .edgelist or .edges, or two or three columns of numbers without names; else as nodes.
        nodes: a path or a pandas, polars or pyarrow frame; None takes the ends of the edges as nodes.
        edges: a path or a frame; None leaves ``edge_index`` empty.
        label: a column, or several for several labels a node; ``id``, ``features``, ``weight``, ``split`` likewise.
    """
    roles = Roles(label, id, features, weight, split)
    if (source is None) == (nodes is None and edges is None):
        raise ValueError("`read_graph` takes either `source` or the tables `nodes` and `edges`, and not both.")
    if source is None:
        return _from_tables(_path(nodes), _path(edges), roles)
    source = _path(source)
    if isinstance(source, Path):
        return _from_folder(source, roles) if source.is_dir() else _from_file(source, roles)
    if _is_networkx(source):
        return _from_networkx(source, roles, name="the networkx graph")
    if _is_pyg(source):
        arrays = {key: value for key, value in source.to_dict().items() if value is not None}
        return graph_from_arrays(arrays, roles, source="the PyG data", nodes=source.num_nodes)
    return _from_tables(source, None, roles)


def _from_tables(nodes: Any, edges: Any, roles: Roles, *, x: Tensor | None = None, name: str = "") -> GraphTable:
    log = DropLog()
    places = [source_name(part, kind) for part, kind in ((nodes, "nodes"), (edges, "edges")) if part is not None]
    name = name or " and ".join(places)
    rows = None if edges is None else read_edges(edges, roles)
    if rows is None and roles.weight:
        raise ValueError("`weight` names a column of the edge table, and there is none: leave it out.")
    if nodes is None:
        assert rows is not None
        if roles.label or roles.id or roles.features or roles.split:
            raise ValueError(
                f"{name} is a list of edges without a table of nodes: leave out `label`, `id`, `features` and `split`, "
                "or give `nodes`."
            )
        graph = GraphTable(name, rows.sorted_ids())
    else:
        found = read_nodes(nodes, None if rows is None else rows.ids, roles, log)
        graph = GraphTable(
            name, found.ids, columns=found.columns, x=x, labels=found.labels, split=found.split, roles=found.roles
        )
    graph = replace(graph, drops=log.drops, counts=log.counts)
    if rows is None:
        return graph
    edge_index, weight = join_edges(rows, graph.ids, log, nodes=places[0])
    return replace(graph, edge_index=edge_index, weight=weight, roles=graph.roles | rows.roles)


def _from_networkx(graph: Any, roles: Roles, *, name: str) -> GraphTable:
    if roles.id or roles.weight:
        raise ValueError(f"{name} has its own ids and weights: leave out `id` and `weight`.")
    nodes, edges, x = tables_from_networkx(graph, source=name)
    return _from_tables(nodes, edges, replace(roles, id=NODE_KEY), x=x, name=name)


def _from_file(path: Path, roles: Roles) -> GraphTable:
    suffix = path.suffix.lower()
    if not path.is_file():
        raise DataError(f"there is no file or folder {path}: check the name.")
    if suffix == ".graphml":
        return _from_networkx(read_graphml(path), roles, name=path.name)
    if suffix == ".npz":
        return graph_from_arrays(read_npz(path), roles, source=path.name)
    if suffix not in TABLES:
        raise DataError(f"{path} has the extension {suffix!r}: a graph is read from {', '.join((*TABLES, *ARCHIVES))}.")
    if not roles.label and _is_edge_list(path):
        return _from_tables(None, path, roles)
    return _from_tables(path, None, roles)


def _is_edge_list(path: Path) -> bool:
    names = read_header(path)
    without_names = len(names) in (2, 3) and floats(names) is not None
    return path.suffix.lower() in (".edgelist", ".edges") or usual_ends(names) is not None or without_names


def _from_folder(folder: Path, roles: Roles) -> GraphTable:
    files = sorted(path for path in folder.iterdir() if path.is_file())
    tables = {
        stem: [p for p in files if p.stem.lower() == stem and p.suffix.lower() in TABLES] for stem in ("nodes", "edges")
    }
    archives = [path for path in files if path.suffix.lower() in ARCHIVES]
    doubled = next((found for found in (*tables.values(), archives) if len(found) > 1), None)
    if doubled:
        raise DataError(
            f"{folder} has both {doubled[0].name} and {doubled[1].name}: name the file to read, or remove one."
        )
    nodes, edges = (next(iter(found), None) for found in tables.values())
    if nodes is not None or edges is not None:
        return replace(_from_tables(nodes, edges, roles), source=folder.name)
    if archives:
        return _from_file(archives[0], roles)
    raise DataError(
        f"{folder} has no graph: it needs nodes.* and edges.*, or one of them, in one of {', '.join(TABLES)}, "
        f"or one file that ends in {' or '.join(ARCHIVES)}."
    )


def _path(source: Any) -> Any:
    return Path(source).expanduser() if isinstance(source, (str, Path)) else source


def _is_networkx(source: Any) -> bool:
    """Whether this is a networkx graph; there is none unless networkx has been imported."""
    return "networkx" in sys.modules and isinstance(source, sys.modules["networkx"].Graph)


def _is_pyg(source: Any) -> bool:
    """Whether this is a PyG ``Data``; there is none unless PyG has been imported."""
    return "torch_geometric.data" in sys.modules and isinstance(source, sys.modules["torch_geometric.data"].Data)
