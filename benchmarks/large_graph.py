"""A generated graph folder of any size, with power-law degrees and local edges, written in blocks of nodes."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beltrami.data.array_file import new_array
from beltrami.data.graph_folder import GraphFolder
from beltrami.external.edge_sort import new_graph_folder

BLOCK = 1 << 19  # nodes of a block
LOCAL = 0.8  # share of the edges that lead to a node with a similar number
TAIL = 1.5  # exponent of the degrees: P(degree > d) falls as d^-1.5
POPULARITY = 2.5  # the r-th most popular node is a target with a probability proportional to r^(1 / 2.5 - 1)
SCATTER = 1_000_003  # popular nodes lie at multiples of this prime
CLUSTERS, SPREAD = 1_000, 0.1  # of the vectors


def write_large_graph(path: Path, *, num_nodes: int, edges_per_node: float, memory: int, seed: int = 0) -> GraphFolder:
    """Write a graph in which every node draws about ``edges_per_node`` neighbours; both directions are listed.

    The number of neighbours that a node draws has the tail of a Pareto distribution. Four of five neighbours have
    similar numbers, at distances with a heavy tail; the others are popular nodes from anywhere, which become hubs.
    """
    with new_graph_folder(path, num_nodes=num_nodes, memory=memory) as sorter:
        for start in range(0, num_nodes, BLOCK):
            random = np.random.default_rng((seed, start))
            nodes = np.arange(start, min(start + BLOCK, num_nodes))
            mean = TAIL / (TAIL - 1)
            drawn = (random.pareto(TAIL, len(nodes)) + 1) * (edges_per_node / mean) + random.random(len(nodes))
            j = np.repeat(nodes, np.minimum(drawn, num_nodes**0.5).astype(np.int64))
            i = _targets(j, num_nodes, random)
            sorter.add_both(j[i != j], i[i != j])
    return GraphFolder.open(path)


def write_vectors(path: Path, *, num_nodes: int, channels: int, seed: int = 0) -> None:
    """Write vectors (n, channels), float32: each is one of 1,000 centres plus normal noise."""
    centres = np.random.default_rng(seed).standard_normal((CLUSTERS, channels), dtype=np.float32)
    with new_array(path, shape=(num_nodes, channels), dtype=np.float32) as out:
        for start in range(0, num_nodes, BLOCK):
            random = np.random.default_rng((seed, start))
            count = min(BLOCK, num_nodes - start)
            noise = random.standard_normal((count, channels), dtype=np.float32)
            out[start : start + count] = centres[random.integers(CLUSTERS, size=count)] + SPREAD * noise


def _targets(j: NDArray[np.int64], num_nodes: int, random: np.random.Generator) -> NDArray[np.int64]:
    distance = 1 + np.minimum(20 * (random.random(len(j)) ** -0.7 - 1), num_nodes / 2).astype(np.int64)
    near = (j + np.where(random.random(len(j)) < 0.5, distance, -distance)) % num_nodes
    rank = (num_nodes * random.random(len(j)) ** POPULARITY).astype(np.int64)
    popular = rank * SCATTER % num_nodes
    return np.where(random.random(len(j)) < LOCAL, near, popular)
