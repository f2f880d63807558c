"""Read node classification graphs of the Open Graph Benchmark (Hu et al. 2020), from tables or from npz archives."""

import gzip
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from beltrami import file_limits as limits
from beltrami.data.dataset import Dataset, Split, mask, undirected
from beltrami.data.file import corrupt_file
from beltrami.data.npz_reader import UNREADABLE, read_npz_arrays
from beltrami.errors import DataError
from beltrami.memory import free_memory, in_bytes

TABLES = tuple(f"raw/{part}.csv.gz" for part in ("edge", "node-feat", "node-label", "num-node-list", "num-edge-list"))
ARCHIVES = ("raw/data.npz", "raw/node-label.npz")
SETS = ("train", "valid", "test")
BYTES_PER_EDGE, BYTES_PER_FEATURE = 250, 12  # at the peak, measured: edges are sorted, features read and copied

GraphSizes = tuple[int, int, int, int]
"""The published numbers of nodes, edges as listed, features and classes; no digests were published."""


def ogb_parts(split: str, *, binary: bool = False) -> tuple[str, ...]:
    """Return the paths of the files of a graph; ``split`` is the name of its split."""
    return (*(ARCHIVES if binary else TABLES), *(f"split/{split}/{part}.csv.gz" for part in SETS))


def check_ogb_memory(name: str, sizes: GraphSizes) -> None:
    """Refuse a graph that does not fit into the free memory, before anything is downloaded or read."""
    nodes, edges, features, _ = sizes
    needed = BYTES_PER_EDGE * edges + BYTES_PER_FEATURE * nodes * features
    if needed > (free := free_memory()):
        raise DataError(
            f"reading {name} takes about {in_bytes(needed)} of memory, and {in_bytes(free)} are free: unpack "
            "its files, convert them, `beltrami convert RAWFOLDER --out my-graph`, and train on the result, "
            "`beltrami train my-graph --recipe precomputed`, or use a machine with more memory."
        )


def read_ogb(folder: Path, *, name: str, sizes: GraphSizes, split: str = "time") -> Dataset:
    """Read a graph of compressed tables: features as given, edges in both directions, every node in the split."""
    edges, x, y, nodes, listed = (
        _table(folder / part, dtype=np.float32 if "feat" in part else np.int64) for part in TABLES
    )
    numbers = (int(nodes[0, 0]), int(listed[0, 0]))
    _check_sizes(folder, x, edges.T, y, numbers, sizes)
    sets = _read_sets(folder, split)
    if sum(map(len, sets)) != len(x) or len(np.unique(np.concatenate(sets))) != len(x):
        raise corrupt_file(folder, f"its split leaves out or names twice some of the {len(x)} nodes")
    return _assemble(folder, name, x, edges.T, y[:, 0], sets)


def read_ogb_archives(folder: Path, *, name: str, sizes: GraphSizes, split: str = "time") -> Dataset:
    """Read a graph of npz archives: features as given, edges in both directions. Most nodes may have no class, which is
    NaN in the file and -1 in the dataset; the split holds the others."""
    try:
        arrays = read_npz_arrays(folder / ARCHIVES[0], names=("edge_index", "node_feat", "num_nodes_list"))
        edges, x, nodes = (arrays[part] for part in ("edge_index", "node_feat", "num_nodes_list"))
        label = read_npz_arrays(folder / ARCHIVES[1], names=("node_label",))["node_label"].reshape(-1)
        y = np.where(np.isnan(label), -1, label).astype(np.int64)
    except UNREADABLE as error:
        raise corrupt_file(folder / "raw", str(error).rstrip(".")) from error
    if edges.ndim != 2 or edges.shape[0] != 2 or x.ndim != 2 or nodes.size != 1:
        raise corrupt_file(folder / ARCHIVES[0], f"its arrays have shapes {edges.shape}, {x.shape}, {nodes.shape}")
    _check_sizes(folder, x, edges, y, (int(nodes.reshape(-1)[0]), edges.shape[1]), sizes)
    return _assemble(folder, name, x.astype(np.float32, copy=False), edges, y, _read_sets(folder, split))


def _check_sizes(
    folder: Path,
    x: NDArray[Any],
    edges: NDArray[Any],
    y: NDArray[Any],
    stated: tuple[int, int],
    sizes: GraphSizes,
) -> None:
    """Refuse arrays that differ from the published sizes, or from the sizes that the files state."""
    found = (x.shape[0], edges.shape[1], x.shape[1], int(y.max()) + 1)
    if found != sizes or stated != sizes[:2]:
        raise corrupt_file(folder, f"nodes, edges, features, classes are {found} where {sizes} were published")


def _read_sets(folder: Path, split: str) -> list[NDArray[np.int64]]:
    return [_table(folder / "split" / split / f"{part}.csv.gz", dtype=np.int64)[:, 0] for part in SETS]


def _assemble(
    folder: Path,
    name: str,
    x: NDArray[np.float32],
    edges: NDArray[np.int64],
    y: NDArray[np.int64],
    sets: Sequence[NDArray[np.int64]],
) -> Dataset:
    try:
        edge_index = undirected(torch.from_numpy(edges), num_nodes=len(x))
        train, val, test = (mask(torch.from_numpy(chosen), num_nodes=len(x)) for chosen in sets)
        split = Split(train, val, test, protocol="ogb", seed=0)
        return Dataset(name, torch.from_numpy(x), edge_index, torch.from_numpy(y), split)
    except ValueError as error:
        raise corrupt_file(folder, str(error)) from error


def _table(path: Path, *, dtype: type[np.generic]) -> NDArray[Any]:
    try:
        with (
            gzip.open(path, "rt", encoding="ascii") as file,
            warnings.catch_warnings(action="error", category=UserWarning),
        ):
            lines = limits.limited_lines(file, what="it", most=limits.TEXT_BYTES)
            table: NDArray[Any] = np.loadtxt(lines, dtype=dtype, delimiter=",", ndmin=2)
    except (*UNREADABLE, UserWarning) as error:
        raise corrupt_file(path, str(error).rstrip(".")) from error
    return table
