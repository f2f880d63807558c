"""DeepWalk on a graph folder: walks are drawn in chunks, positions are learned in a file."""

import tempfile
from pathlib import Path

import numpy as np
import torch

from beltrami.data.array_file import Array, new_array, open_array
from beltrami.data.file import make_folder
from beltrami.data.graph_folder import GraphFolder
from beltrami.errors import DataError
from beltrami.external.pagerank_rows import check_symmetric, weighted_degrees
from beltrami.memory import in_bytes
from beltrami.position import DeepWalk
from beltrami.position.deepwalk import Walking
from beltrami.position.walk import Walker

POSITIONS = "pos.npy"
NODE_BYTES = 64  # of memory for a node: its degree, noise, sums, starts and their order
CHUNK = 1 << 22


def write_deepwalk(
    folder: GraphFolder, out: Path, encoding: DeepWalk, *, generator: torch.Generator, memory: int
) -> Array:
    """Write the positions (n, channels), float32, of an undirected graph to pos.npy of a folder.

    The edges are read from the folder as the walks need them, the positions are a memory map while they are learned,
    and no array holds all walks: each of the ``walks_per_node`` rounds visits the nodes in another random order. With
    one walk a node the positions are those of ``encoding`` in memory, to the bit.
    """
    if encoding.tuned:
        raise ValueError("a graph folder has no link prediction: give a `walk_length`.")
    needed = NODE_BYTES * folder.num_nodes
    if needed > memory:
        raise DataError(
            f"DeepWalk on {folder.num_nodes} nodes needs {in_bytes(needed)}, and {in_bytes(memory)} are allowed: "
            "give more with `--memory`."
        )
    check_symmetric(folder, needed_by="DeepWalk on a graph folder")
    make_folder(out)
    degree = torch.from_numpy(2 * weighted_degrees(folder, memory=memory).astype(np.float32))
    starts = torch.from_numpy(np.flatnonzero(np.diff(folder.ptr)))
    with (
        new_array(out / POSITIONS, shape=(folder.num_nodes, encoding.channels), dtype=np.float32) as u,
        tempfile.TemporaryDirectory(dir=out, prefix=".walks.") as scratch,
    ):
        if folder.num_edges:
            walker = Walker.over(_tensor(folder.ptr), _tensor(folder.index), _cumulative(folder, Path(scratch)))
            walking = Walking(walker, [starts] * encoding.walks_per_node, encoding.walk_length)
            encoding.learn(torch.from_numpy(u), degree, walking, generator)
    return open_array(out / POSITIONS)


def _tensor(array: Array) -> torch.Tensor:
    """Return a read-only memory map as a tensor; it must not be written to."""
    if isinstance(array, np.memmap) and array.filename is not None:
        mapped = np.memmap(array.filename, array.dtype, "c", offset=array.offset, shape=array.shape)
        return torch.from_numpy(mapped)
    return torch.from_numpy(np.array(array))


def _cumulative(folder: GraphFolder, scratch: Path) -> torch.Tensor | None:
    """Return the sums of the first 0, ..., m weights, (m + 1,), from a temporary file; None without weights."""
    if folder.weight is None:
        return None
    path, total = scratch / "cumulative.npy", 0.0
    with new_array(path, shape=(folder.num_edges + 1,), dtype=np.float64) as sums:
        for start in range(0, folder.num_edges, CHUNK):
            part = np.concatenate(([total], folder.weight[start : start + CHUNK])).cumsum()
            sums[start + 1 : start + len(part)] = part[1:]
            total = float(part[-1])
    return _tensor(open_array(path))
