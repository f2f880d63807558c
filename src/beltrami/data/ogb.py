"""ogb: ogbn-arxiv in the layout of the Open Graph Benchmark, compressed text throughout."""

import gzip
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from beltrami.data.catalogue import Facts
from beltrami.data.dataset import Dataset, undirected
from beltrami.data.split import Split, mask
from beltrami.errors import DataError

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


def read_ogb(folder: Path, *, name: str, expected: Facts) -> Dataset:
    """Read a node classification graph of OGB: features as given, citations in both directions, the split by year.

    Args:
        folder: holds ``raw`` and ``split/time``.
        name: the dataset's name.
        expected: the published numbers of nodes, edges, features and classes; there is no digest to check by.
    """
    table = {part: _table(folder / part, dtype=np.float32 if "feat" in part else np.int64) for part in PARTS}
    edges, x, y, nodes, citations, *sets = table.values()
    found = (x.shape[0], edges.shape[0], x.shape[1], int(y.max()) + 1)
    published = (expected.nodes, expected.edges, expected.features, expected.classes)
    if found != published or (nodes[0, 0], citations[0, 0]) != published[:2]:
        raise _refusal(folder, f"nodes, edges, features, classes are {found} where {published} were published")
    try:
        n = x.shape[0]
        edge_index = undirected(torch.from_numpy(edges.T), num_nodes=n)
        train, val, test = (mask(torch.from_numpy(chosen[:, 0]), num_nodes=n) for chosen in sets)
        if sum(chosen.shape[0] for chosen in sets) != n or not bool((train | val | test).all()):
            raise ValueError(f"the split by year leaves out or names twice some of the {n} nodes")
        split = Split(train, val, test, protocol="ogb", seed=0)
        return Dataset(name, torch.from_numpy(x), edge_index, torch.from_numpy(y[:, 0]), split)
    except ValueError as error:
        raise _refusal(folder, str(error)) from error


def _table(path: Path, *, dtype: type[np.generic]) -> NDArray[Any]:
    try:
        with (
            gzip.open(path, "rt", encoding="ascii") as file,
            warnings.catch_warnings(action="error", category=UserWarning),
        ):
            table: NDArray[Any] = np.loadtxt(file, dtype=dtype, delimiter=",", ndmin=2)
    except (OSError, EOFError, ValueError, UserWarning, zlib.error) as error:
        raise _refusal(path, str(error)) from error
    return table


def _refusal(path: Path, reason: str) -> DataError:
    return DataError(
        f"{path} is corrupt or not as OGB published it ({reason}): delete it and try again, or point BELTRAMI_DATA at "
        "a folder with the right files."
    )
