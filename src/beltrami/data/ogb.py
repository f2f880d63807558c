"""ogb: read ogbn-arxiv from the compressed tables of the Open Graph Benchmark."""

import gzip
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from beltrami.data.dataset import Dataset, Split, mask, undirected
from beltrami.data.file import corrupt_file

PARTS = (
    "raw/edge.csv.gz",
    "raw/node-feat.csv.gz",
    "raw/node-label.csv.gz",
    "raw/num-node-list.csv.gz",
    "raw/num-edge-list.csv.gz",
    "split/time/train.csv.gz",
    "split/time/valid.csv.gz",
    "split/time/test.csv.gz",
)


def read_ogb(folder: Path, *, name: str, sizes: tuple[int, int, int, int]) -> Dataset:
    """Read a node classification graph of OGB: features as given, citations in both directions, the split by year.

    ``sizes`` are the published numbers of nodes, edges, features and classes; no digest was published.
    """
    table = {part: _table(folder / part, dtype=np.float32 if "feat" in part else np.int64) for part in PARTS}
    edges, x, y, nodes, citations, *sets = table.values()
    found = (x.shape[0], edges.shape[0], x.shape[1], int(y.max()) + 1)
    if found != sizes or (nodes[0, 0], citations[0, 0]) != sizes[:2]:
        raise corrupt_file(folder, f"nodes, edges, features, classes are {found} where {sizes} were published")
    try:
        n = x.shape[0]
        edge_index = undirected(torch.from_numpy(edges.T), num_nodes=n)
        train, val, test = (mask(torch.from_numpy(chosen[:, 0]), num_nodes=n) for chosen in sets)
        if sum(chosen.shape[0] for chosen in sets) != n or not bool((train | val | test).all()):
            raise ValueError(f"the split by year leaves out or names twice some of the {n} nodes")
        split = Split(train, val, test, protocol="ogb", seed=0)
        return Dataset(name, torch.from_numpy(x), edge_index, torch.from_numpy(y[:, 0]), split)
    except ValueError as error:
        raise corrupt_file(folder, str(error)) from error


def _table(path: Path, *, dtype: type[np.generic]) -> NDArray[Any]:
    try:
        with (
            gzip.open(path, "rt", encoding="ascii") as file,
            warnings.catch_warnings(action="error", category=UserWarning),
        ):
            table: NDArray[Any] = np.loadtxt(file, dtype=dtype, delimiter=",", ndmin=2)
    except (OSError, EOFError, ValueError, UserWarning, zlib.error) as error:
        raise corrupt_file(path, str(error)) from error
    return table
