"""Read the heterophilous graphs of Platonov et al. (2023) and Pei et al. (2020)."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beltrami import file_limits as limits
from beltrami.data.dataset import Dataset, Metric, Split, undirected
from beltrami.data.file import corrupt_file
from beltrami.data.npz_reader import UNREADABLE, Arrays, read_npz_arrays
from beltrami.errors import DataError

SPLITS = 10
ARRAYS = ("node_features", "node_labels", "edges", "train_masks", "val_masks", "test_masks")
MASKS = ("train_mask", "val_mask", "test_mask")
EDGES, NODES = "out1_graph_edges.txt", "out1_node_feature_label.txt"
FILE_DIGESTS = {
    "roman-empire": "d7f53d4fca5abbefbf374b843573490f087a64024ea0e9f7a913441321c2935a",
    "amazon-ratings": "56801f2004ecde2e98b57ddea58e84a1d02aa8c8f05afa279facbbb5b5a29e7c",
    "minesweeper": "137e822925ea282d706b2cc0152c61f4b6b6a9632610ddf29772158072d14c2f",
    "tolokers": "83f9f735d82586e63d733fc3833a0782b16351ce20b45a6f079ccbcc3ff9d21c",
    "questions": "ee1e75fbcd8a991d59a02ecdc8f790c6a58c4d6991a943cd85c4e223dc2ab4ca",
    "chameleon": "e6a2761bffd8a2e8ff1eb7500f6d838097830d55f389678106de7b6ff236d0ab",
    "squirrel": "b98565a4b2d3451b4e50ed45382eb7e01dc13f6f756eab26002958f3db483466",
    "actor": "ebdddfa0905fb27555cb9ef5718fbc0c9b63ab914529543e480956b0a2c6c065",
    "texas": "5d2b47b128c114ffb4818b35e9865482477229e9c06318896548020ae52fc767",
    "wisconsin": "2a313db9ecf516333a7b9866433722375058041273714d6b930d988c8ae99285",
    "cornell": "59f0c46db1642cc6c00da4be44a0f44a274f1740e1a0e04b3d163c0cb30f5dd2",
}
"""The ``files_digest`` of the published files of each graph."""


def pei_files(files: str) -> tuple[str, ...]:
    """Return the names of a graph's files: edges, nodes, and ten splits, whose names begin with ``files``."""
    return (EDGES, NODES, *(f"{files}_split_0.6_0.2_{k}.npz" for k in range(SPLITS)))


def files_digest(paths: Sequence[Path]) -> str:
    """Return the SHA-256 of the object names that git gives the files, one after the other: a repository states the
    object names of its files, so that files can be verified against it."""
    names = []
    for path in paths:
        try:
            content = limits.read_limited(path, most=limits.TEXT_BYTES)
        except OSError as error:
            raise corrupt_file(path, str(error)) from error
        names.append(hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest())
    return hashlib.sha256("".join(names).encode()).hexdigest()


def read_platonov(path: Path, *, name: str, digest: str, metric: Metric = "accuracy") -> Dataset:
    """Read one npz archive of Platonov et al.: features as given, edges in both directions, ten splits."""
    _verify(path, [path], digest)
    try:
        arrays = read_npz_arrays(path, names=ARRAYS)
        x, y, edges, *masks = (torch.from_numpy(_plain(arrays, part)) for part in ARRAYS)
        if any(part.dim() != 2 or len(part) != SPLITS or part.dtype != torch.bool for part in masks):
            raise ValueError(f"its masks are not {SPLITS} rows of booleans")
        train, val, test = masks
        splits = tuple(Split(train[k], val[k], test[k], "platonov", k) for k in range(SPLITS))
        return Dataset(name, x, undirected(edges.T, num_nodes=len(x)), y, splits=splits, metric=metric)
    except UNREADABLE as error:
        raise corrupt_file(path, str(error).rstrip(".")) from error


def read_pei(folder: Path, *, name: str, files: str, digest: str, words: int | None = None) -> Dataset:
    """Read a graph of Pei et al.: edges in both directions, ten splits.

    A line of the nodes has a number, features and a class, separated by tabs. The features are all values, separated
    by commas, or, with ``words``, the columns of ``words`` that are 1. Nodes are put in the order of their numbers.
    """
    edges, nodes, *splits = (folder / file for file in pei_files(files))
    _verify(folder, [edges, nodes, *splits], digest)
    pairs = torch.from_numpy(_numbers(edges, _lines(edges), separator="\t"))
    x, y = _read_nodes(nodes, words)
    try:
        if pairs.shape[1] != 2:
            raise ValueError(f"{EDGES} has {pairs.shape[1]} columns in place of 2")
        numbered = tuple(_read_split(path, k) for k, path in enumerate(splits))
        return Dataset(name, x, undirected(pairs.T, num_nodes=len(x)), y, splits=numbered)
    except (ValueError, DataError) as error:
        raise corrupt_file(folder, str(error).rstrip(".")) from error


def _verify(place: Path, paths: Sequence[Path], digest: str) -> None:
    if files_digest(paths) != digest:
        raise corrupt_file(place, "its content is not the published one")


def _plain(arrays: Arrays, name: str) -> NDArray[Any]:
    if name not in arrays:
        raise DataError(f"its array {name!r} holds Python objects, which are not read")
    return arrays[name]


def _lines(path: Path) -> list[str]:
    """Return the lines of a text file after its first, which names the columns."""
    try:
        lines = limits.read_limited(path, most=limits.TEXT_BYTES, growth=4).decode("ascii").splitlines()
    except UNREADABLE as error:
        raise corrupt_file(path, str(error).rstrip(".")) from error
    return lines[1:]


def _numbers(path: Path, lines: Sequence[str], *, separator: str, dtype: type[np.generic] = np.int64) -> NDArray[Any]:
    """Return the table of numbers in some lines of a file; all lines must have the same number of columns."""
    if not lines:
        raise corrupt_file(path, "it has no rows")
    try:
        table: NDArray[Any] = np.loadtxt(lines, dtype=dtype, delimiter=separator, ndmin=2)
    except ValueError as error:
        raise corrupt_file(path, str(error).rstrip(".")) from error
    return table


def _read_nodes(path: Path, words: int | None) -> tuple[Tensor, Tensor]:
    """Return the features (n, d) and the classes (n,) of the nodes, in the order of their numbers."""
    rows = [line.split("\t") for line in _lines(path)]
    if any(len(row) != 3 for row in rows):
        raise corrupt_file(path, "a row does not have the three columns node, features and class")
    table = _numbers(path, [f"{node},{label}" for node, _, label in rows], separator=",")
    order = table[:, 0].argsort()
    if not np.array_equal(table[order, 0], np.arange(len(rows))):
        raise corrupt_file(path, f"its nodes are not numbered from 0 to {len(rows) - 1}")
    if words is None:
        x = _numbers(path, [features for _, features, _ in rows], separator=",", dtype=np.float32)
    else:
        x = np.zeros((len(rows), words), dtype=np.float32)
        for row, (_, features, _) in zip(x, rows, strict=True):
            chosen = _numbers(path, [features], separator=",")[0]
            if chosen.min() < 0 or chosen.max() >= words:
                raise corrupt_file(path, f"a node has a feature {chosen.max()} of {words}")
            row[chosen] = 1
    return torch.from_numpy(x[order]), torch.from_numpy(table[order, 1])


def _read_split(path: Path, number: int) -> Split:
    try:
        arrays = read_npz_arrays(path, names=MASKS)
        train, val, test = (torch.from_numpy(_plain(arrays, part) > 0) for part in MASKS)
    except UNREADABLE as error:
        raise corrupt_file(path, str(error).rstrip(".")) from error
    return Split(train, val, test, "pei", number)
