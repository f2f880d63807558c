"""A graph in a folder of arrays that need not fit into memory: compressed rows of edges, features, labels, roles."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from beltrami.data.array_file import Array, find_array, new_array, open_array
from beltrami.data.dataset import Dataset, Split
from beltrami.data.file import TEMPORARY, make_folder, write_atomically
from beltrami.errors import DataError
from beltrami.file_limits import read_json
from beltrami.graph import Edges

HEADER = "graph.json"
SCHEMA = 1
UNUSED, TRAIN, VAL, TEST = range(4)  # values of ``role``
CHUNK = 1 << 24  # entries that are read at once
MOST_NODES = 2**31 - 1  # of a 32-bit index


@dataclass(frozen=True, eq=False)
class GraphFolder:
    """A graph whose arrays are memory maps of the files of a folder.

    The file ``graph.json`` holds the numbers of nodes and edges and is written last. Each array is a file of its name:

    ======== ==================== =========================================================================
    ptr      (n + 1,) int64       the edges that enter node i are the entries ``ptr[i]`` to ``ptr[i + 1]``
    index    (m,) int32 or int64  the sending node of each edge, ascending for each receiver
    weight   (m,) float32         optional: a positive weight of each edge
    x        (n, f) numbers       optional: features
    pos      (n, p) numbers       optional: positions
    y        (n,) integers        optional: classes from 0, and -1 for unlabelled nodes
    role     (n,) uint8           optional: 0 unused, 1 training, 2 validation, 3 test
    ======== ==================== =========================================================================

    Both directions of an undirected edge are listed.
    """

    path: Path
    ptr: Array
    index: Array
    weight: Array | None = None
    x: Array | None = None
    pos: Array | None = None
    y: Array | None = None
    role: Array | None = None

    @staticmethod
    def open(path: Path) -> "GraphFolder":
        """Open the folder and check types and shapes; :meth:`verify` also reads the values."""
        header = _read_header(path)
        names = ("ptr", "index", "weight", "x", "pos", "y", "role")
        files = {name: file for name in names if (file := find_array(path, name)) is not None}
        for name in ("ptr", "index"):
            if name not in files:
                raise DataError(f"{path} has no {name}.npy: it is no graph folder, or it was not written to its end.")
        folder = GraphFolder(path, **{name: open_array(file) for name, file in files.items()})
        folder._check(header)
        return folder

    @property
    def num_nodes(self) -> int:
        return len(self.ptr) - 1

    @property
    def num_edges(self) -> int:
        """Directed edges: twice the number of undirected ones."""
        return len(self.index)

    @property
    def num_features(self) -> int:
        return 0 if self.x is None else self.x.shape[1]

    def edges(self) -> Edges:
        """Return the graph in memory."""
        ptr, index = torch.from_numpy(np.array(self.ptr)), torch.from_numpy(np.array(self.index, dtype=np.int64))
        receivers = torch.arange(self.num_nodes).repeat_interleave(ptr.diff())
        weight = None if self.weight is None else torch.from_numpy(np.array(self.weight, dtype=np.float32))
        return Edges.build(torch.stack((index, receivers)), num_nodes=self.num_nodes, weight=weight)

    def verify(self) -> None:
        """Read the values of ptr, index, weight, y and role in chunks; refuse the first invalid one."""
        self.verify_edges()
        self.verify_labels()

    def verify_edges(self) -> None:
        """Read the values of ptr, index and weight in chunks; refuse the first invalid one."""
        for start, block in _chunks(self.ptr, overlap=1):
            if np.any(np.diff(block) < 0):
                node = start + int(np.flatnonzero(np.diff(block) < 0)[0])
                raise DataError(f"ptr of {self.path} decreases after node {node}: it must count edges from 0 to m.")
        for start, block in _chunks(self.index):
            outside = (block < 0) | (block >= self.num_nodes)
            if outside.any():
                edge = start + int(np.flatnonzero(outside)[0])
                found = f"edge {edge} comes from node {self.index[edge]}"
                raise DataError(f"index of {self.path}: {found}, and nodes run from 0 to {self.num_nodes - 1}.")
        for start, block in _chunks(self.weight) if self.weight is not None else ():
            wrong = np.flatnonzero(~(np.isfinite(block) & (block > 0)))
            if len(wrong):
                found = f"edge {start + int(wrong[0])} has {block[wrong[0]]}"
                raise DataError(f"weight of {self.path}: {found}; it must be positive and finite.")

    def verify_labels(self) -> None:
        """Read the values of y and role in chunks; refuse the first invalid one."""
        for start, block in _chunks(self.y) if self.y is not None else ():
            if block.min() < -1:
                node = start + int(block.argmin())
                raise DataError(f"y of {self.path}: node {node} has class {block.min()}; unlabelled nodes have -1.")
        for start, block in _chunks(self.role) if self.role is not None else ():
            wrong = np.flatnonzero((block < UNUSED) | (block > TEST))
            if len(wrong):
                found = f"node {start + int(wrong[0])} has {block[wrong[0]]}"
                raise DataError(f"role of {self.path}: {found}; roles run from {UNUSED} to {TEST}.")

    def verify_rows(self, *names: str) -> None:
        """Read the named arrays of rows, x or pos, in chunks; refuse the first value that is NaN or infinite."""
        for name in names:
            array = getattr(self, name)
            if array is None or array.dtype.kind != "f":
                continue
            for start, block in _chunks(array, size=max(1, CHUNK // max(1, array.shape[1]))):
                check_finite_rows(block, first=start, name=f"{name} of {self.path}")

    def _check(self, header: dict[str, int]) -> None:
        n, m = header["num_nodes"], header["num_edges"]
        shapes = {"ptr": (n + 1,), "index": (m,), "weight": (m,), "y": (n,), "role": (n,), "x": (n, -1), "pos": (n, -1)}
        kinds = {"ptr": "iu", "index": "iu", "y": "iu", "role": "iu", "weight": "f", "x": "fiub", "pos": "fiub"}
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array is None:
                continue
            fits = len(array.shape) == len(shape) and all(b in (-1, a) for a, b in zip(array.shape, shape, strict=True))
            if not fits or array.dtype.kind not in kinds[name]:
                wanted = str(tuple(shape)).replace("-1", "any")
                found = f"shape {array.shape} and type {array.dtype}"
                numbers = {"iu": "integers", "f": "floats", "fiub": "numbers"}[kinds[name]]
                raise DataError(f"{name} of {self.path} has {found}; by {HEADER} it must hold {numbers}, {wanted}.")
        if not n:
            raise DataError(f"{self.path} has no nodes: a graph needs at least one.")
        if int(self.ptr[0]) != 0 or int(self.ptr[-1]) != m:
            raise DataError(f"ptr of {self.path} runs from {self.ptr[0]} to {self.ptr[-1]}; it must from 0 to {m}.")


def is_graph_folder(path: Path) -> bool:
    """Return whether a path is a folder with the file ``graph.json``."""
    return (path / HEADER).is_file()


def check_finite_rows(block: Array, *, first: int, name: str) -> None:
    """Refuse rows (r, d) with a value that is NaN or infinite; ``first`` is the node of the first row."""
    if not np.isfinite(block).all():
        node = first + int(np.flatnonzero(~np.isfinite(block).all(1))[0])
        raise DataError(f"{name}: node {node} has a value that is NaN or infinite: clean or impute it first.")


def check_new_folder(path: Path) -> None:
    """Refuse a path at which no graph folder can be written: a file, or a folder that holds files."""
    if path.exists() and not path.is_dir():
        raise DataError(f"{path} is a file: choose another folder for the graph with `--out`.")
    if path.is_dir() and any(path.iterdir()):
        raise DataError(f"{path} is not empty: choose a new folder for the graph with `--out`.")
    make_folder(path.resolve().parent)


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside the new folder ``path``, on the same disk; it is deleted after the block."""
    check_new_folder(path)
    place = path.resolve()
    try:
        made = tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}.", suffix=TEMPORARY)
    except OSError as error:
        raise OSError(f"cannot make {path} ({error.strerror}): choose another folder with `--out`.") from error
    with made as name:
        yield Path(name)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder and move it to ``path`` if the block succeeds: ``path`` is whole, or it is not there."""
    with scratch_folder(path) as scratch:
        folder = scratch / "graph"
        folder.mkdir()
        yield folder
        try:
            os.replace(folder, path)
        except OSError as error:
            why = f"the graph cannot be moved to {path} ({error.strerror})"
            raise OSError(f"{why}: name a folder that does not exist yet with `--out`.") from error


def finish_graph_folder(path: Path, *, num_nodes: int, num_edges: int) -> GraphFolder:
    """Write ``graph.json`` after all arrays are written, and return the folder."""
    header = {"schema": SCHEMA, "num_nodes": num_nodes, "num_edges": num_edges}
    write_atomically(path / HEADER, json.dumps(header).encode())
    return GraphFolder.open(path)


def write_graph_folder(path: Path, dataset: Dataset, split: Split | None = None) -> GraphFolder:
    """Write a dataset that is in memory, with the roles of a split, to a new or empty folder."""
    edges = Edges.build(dataset.edge_index, num_nodes=dataset.num_nodes)
    arrays = {"ptr": edges.rows.ptr.long(), "index": edges.rows.index, "x": dataset.x, "y": dataset.y}
    if split is not None:
        arrays["role"] = roles_of(split)
    with new_folder(path) as folder:
        for name, tensor in arrays.items():
            values = tensor.cpu().numpy()
            with new_array(folder / f"{name}.npy", shape=values.shape, dtype=values.dtype) as out:
                out[...] = values
        finish_graph_folder(folder, num_nodes=dataset.num_nodes, num_edges=edges.num_edges)
    return GraphFolder.open(path)


def roles_of(split: Split) -> Tensor:
    """Return the role of every node, (n,) of type uint8."""
    role = torch.full_like(split.train, UNUSED, dtype=torch.uint8)
    for number, chosen in {TRAIN: split.train, VAL: split.val, TEST: split.test}.items():
        role[chosen] = number
    return role


def _chunks(array: Array, *, size: int = CHUNK, overlap: int = 0) -> Iterator[tuple[int, Array]]:
    for start in range(0, len(array), size):
        yield start, np.asarray(array[start : start + size + overlap])


def _read_header(path: Path) -> dict[str, int]:
    try:
        header = json.loads(read_json(path / HEADER))
        numbers = {name: header[name] for name in ("schema", "num_nodes", "num_edges")}
    except FileNotFoundError:
        raise DataError(f"{path} has no {HEADER}: it is no graph folder, or it was not written to its end.") from None
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{path / HEADER} is damaged: it must hold schema, num_nodes and num_edges.") from None
    if numbers["schema"] != SCHEMA:
        raise DataError(f"{path / HEADER} has schema {numbers['schema']}, and this version reads {SCHEMA}.")
    if not all(type(value) is int and value >= 0 for value in numbers.values()):
        raise DataError(f"{path / HEADER} is damaged: its numbers must be whole and not negative.")
    return numbers
