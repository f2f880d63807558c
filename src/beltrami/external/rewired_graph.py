"""Graph folders made from rows of neighbours: the DIGL graph, and the graph of nearest neighbours."""

import os
import shutil
from pathlib import Path

import numpy as np

from beltrami.data.array_file import Array, find_array
from beltrami.data.graph_folder import GraphFolder, scratch_folder
from beltrami.external.edge_sort import new_graph_folder
from beltrami.external.nearest_rows import PROBE, write_nearest_rows
from beltrami.external.pagerank_rows import write_pagerank_rows
from beltrami.position import Progress

CHUNK = 1 << 20  # entries that are read at once
KEPT = ("x", "pos", "y", "role")


def write_diffusion_graph(
    folder: GraphFolder,
    out: Path,
    *,
    k: int,
    restart: float,
    tolerance: float,
    weighted: bool = True,
    memory: int,
    progress: Progress | None = None,
) -> GraphFolder:
    """Write the DIGL graph of a graph folder: the k largest entries of each row of PageRank with self-loops, by push.

    Both directions of every edge are written, with the larger of their two weights, as ``Chain(TopK(k), Symmetric())``
    does in memory; see :func:`~beltrami.external.pagerank_rows.write_pagerank_rows` for the entries.
    """
    with scratch_folder(out) as scratch:
        settings = {"restart": restart, "tolerance": tolerance, "loops": 1.0}
        rows = write_pagerank_rows(folder, scratch, top=k, **settings, memory=memory, progress=progress)
        value = rows.value if weighted else None
        return write_rewired(folder, out, rows.index, value, symmetric=True, memory=memory)


def write_nearest_graph(
    folder: GraphFolder,
    vectors: Array,
    out: Path,
    *,
    k: int,
    symmetric: bool = False,
    memory: int,
    probe: int = PROBE,
    progress: Progress | None = None,
) -> GraphFolder:
    """Write the graph of the k nearest nodes of each node by vectors (n, d): edges j -> i, without weights."""
    with scratch_folder(out) as scratch:
        index = write_nearest_rows(vectors, scratch, k=k, memory=memory, probe=probe, progress=progress)
        return write_rewired(folder, out, index, None, symmetric=symmetric, memory=memory)


def write_rewired(
    folder: GraphFolder, out: Path, index: Array, value: Array | None, *, symmetric: bool, memory: int
) -> GraphFolder:
    """Write a graph folder with edges j -> i from each node j in row i of ``index`` (n, k), where -1 is no node.

    The arrays of the nodes of ``folder`` are linked to the new folder, or copied if the file system has no links.
    """
    rows = max(1, CHUNK // index.shape[1])
    with new_graph_folder(out, num_nodes=len(index), weighted=value is not None, memory=memory) as sorter:
        for start in range(0, len(index), rows):
            j = index[start : start + rows]
            found = (j >= 0) if value is None else (j >= 0) & (value[start : start + rows] > 0)
            i = np.broadcast_to(np.arange(start, start + len(j))[:, None], j.shape)[found]
            add = sorter.add_both if symmetric else sorter.add
            add(j[found], i, None if value is None else value[start : start + rows][found])
        for name in KEPT:
            file = find_array(folder.path, name)
            if file is not None:
                _share(file, sorter.folder / file.name)
    return GraphFolder.open(out)


def _share(file: Path, new: Path) -> None:
    """Link a file to a second name, or copy it."""
    try:
        os.link(file.resolve(), new)
    except OSError:
        shutil.copyfile(file, new)
