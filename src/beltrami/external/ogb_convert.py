"""The raw files of a graph of the Open Graph Benchmark, tables or archives, converted to a graph folder."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from beltrami.data.array_file import Array, new_array, new_array_file
from beltrami.data.graph_folder import TEST, TRAIN, UNUSED, VAL, GraphFolder
from beltrami.data.graph_table import DropLog
from beltrami.errors import DataError
from beltrami.external.edge_sort import new_graph_folder
from beltrami.external.ogb_archives import DATA, RawArchives
from beltrami.external.ogb_files import EDGES, RawGraph, RawRows, RawTables, number_chunks
from beltrami.external.table_convert import Converted, row_counter
from beltrami.position import Progress

SETS = {"train": TRAIN, "valid": VAL, "test": TEST}
MOST_CLASSES = 2**31


def is_ogb_folder(path: Path) -> bool:
    """Return whether a folder holds the raw files of a graph of OGB, itself or in its folder ``raw``."""
    return any((_raw(path) / name).is_file() for name in (EDGES, DATA))


def convert_ogb(path: Path, out: Path, *, memory: int, progress: Progress | None = None) -> Converted:
    """Convert the raw files of a graph of OGB, with the split beside them, to a new graph folder.

    Edges are written in both directions, once, without self-loops. Labels that are missing become -1. Small arrays are
    written first, so that errors in them are found before the edges are sorted.
    """
    raw, log = _raw(path), DropLog()
    source: RawGraph = (RawTables if (raw / EDGES).is_file() else RawArchives)(raw, memory=memory)
    n = source.num_nodes
    with new_graph_folder(out, num_nodes=n, memory=memory) as sorter:
        _write_roles(raw.parent / "split", sorter.folder / "role.npy", n)
        if (labels := source.labels()) is not None:
            _write_labels(labels, sorter.folder / "y.npy", n)
        source.add_edges(sorter, log, report=row_counter("rows of edges", source.listed_edges, progress))
        if (features := source.features()) is not None:
            report = row_counter("rows of features", n, progress)
            _write_features(features, sorter.folder / "x.npy", n, report=report)
    return Converted(GraphFolder.open(out), log)


def _raw(path: Path) -> Path:
    return path / "raw" if (path / "raw").is_dir() else path


def _write_features(rows: RawRows, out: Path, n: int, *, report: Callable[[int], None]) -> None:
    with new_array_file(out, shape=(n, rows.width), dtype=rows.dtype) as file:
        for start, part in _numbered(rows, n):
            wrong = np.flatnonzero(~np.isfinite(part).all(1))
            if len(wrong):
                raise DataError(f"{rows.path}: row {start + wrong[0]} has a missing or infinite feature: fill it in.")
            file.write(np.ascontiguousarray(part, rows.dtype).data)
            report(len(part))


def _write_labels(rows: RawRows, out: Path, n: int) -> None:
    with new_array_file(out, shape=(n,), dtype=np.int64) as file:
        for start, part in _numbered(rows, n):
            classes = np.where(np.isnan(part[:, 0]), -1, part[:, 0])
            wrong = np.flatnonzero((classes < -1) | (classes >= MOST_CLASSES) | (classes != np.floor(classes)))
            if len(wrong):
                found = f"row {start + wrong[0]} has label {classes[wrong[0]]:.15g}"
                raise DataError(f"{rows.path}: {found}; it must be a whole number from 0, or NaN for no class.")
            file.write(classes.astype(np.int64).data)


def _numbered(rows: RawRows, n: int) -> Iterator[tuple[int, Array]]:
    """Yield the chunks, each with the number of its first row; refuse more or fewer than ``n`` rows."""
    row = 0
    for part in rows.chunks:
        if row + len(part) > n:
            raise DataError(f"{rows.path} has over {n} rows, and the graph has {n} nodes.")
        yield row, part
        row += len(part)
    if row < n:
        raise DataError(f"{rows.path} has {row} rows, and the graph has {n} nodes.")


def _write_roles(folder: Path, out: Path, n: int) -> None:
    splits = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    if not splits:
        return
    if len(splits) > 1:
        raise DataError(
            f"{folder} has several splits, such as {splits[0].name} and {splits[1].name}: keep one of them."
        )
    with new_array(out, shape=(n,), dtype=np.uint8) as role:
        role[:] = UNUSED
        for name, number in SETS.items():
            path = splits[0] / f"{name}.csv.gz"
            for values in number_chunks(path):
                nodes = values[:, 0]
                outside = nodes[~((nodes >= 0) & (nodes < n) & (nodes == np.floor(nodes)))]
                if len(outside):
                    raise DataError(f"{path} names node {outside[0]:.15g}, and the graph has {n} nodes.")
                chosen = nodes.astype(np.int64)
                taken = chosen[(role[chosen] != UNUSED) & (role[chosen] != number)]
                if len(taken):
                    raise DataError(f"{path} names node {taken[0]}, which is in another set too: keep it in one set.")
                role[chosen] = number
