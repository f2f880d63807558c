"""Graphs built without files: scikit-learn's digits, and random graphs of any size for measurements."""

import numpy as np
import torch
from numpy.typing import NDArray

from beltrami.data.dataset import Dataset, undirected

GREY_LEVELS, DIGIT_NEIGHBOURS = 16, 8
EXPONENT = 2.5  # of the power law of degrees, typical of citation and social graphs
WITHIN = 0.6  # share of edges drawn within a class


def read_digits() -> Dataset:
    """Return scikit-learn's 1797 digits of 8 x 8 pixels, each joined to its 8 nearest by Euclidean distance.

    Squared distances are exact integers and ties go to the lowest index, so the graph is the same on every machine.
    Features are grey levels scaled to [0, 1], classes are the digits.
    """
    from sklearn.datasets import load_digits

    images, classes = load_digits(return_X_y=True)
    n = images.shape[0]
    square = (images.astype(np.int64) ** 2).sum(1)
    distance = square[:, None] + square[None, :] - 2 * (images @ images.T).astype(np.int64)
    np.fill_diagonal(distance, distance.max() + 1)
    order = distance * n + np.arange(n)  # unique keys: distance first, then the index
    nearest = np.argpartition(order, DIGIT_NEIGHBOURS - 1, axis=1)[:, :DIGIT_NEIGHBOURS]
    edge_index = np.stack((nearest.ravel(), np.repeat(np.arange(n), DIGIT_NEIGHBOURS)))
    x, y = torch.from_numpy(images / GREY_LEVELS).float(), torch.from_numpy(classes).long()
    return Dataset("digits", x, undirected(torch.from_numpy(edge_index), num_nodes=n), y)


def power_law(num_nodes: int, num_edges: int, *, seed: int, features: int = 16, classes: int = 8) -> Dataset:
    r"""Return a random undirected graph with degrees :math:`P(d) \sim d^{-5/2}` and classes that are communities.

    The expected degree of a node is proportional to its weight :math:`w_r = r^{-2/3}` at rank r = 1, 2, .... The first
    node of an edge is drawn by weight; the second too, three times of five from the class of the first, else from the
    whole graph. Repeated edges and loops are drawn again. Some nodes may have no edge. Features are normal around a
    mean for each class; classes have nearly equal sizes. ``num_edges`` counts undirected edges, at most a quarter of
    all pairs. A million edges take about a second.
    """
    most = num_nodes * (num_nodes - 1) // 8
    if num_nodes < 2 or not 0 <= num_edges <= most:
        needed = f"at least two nodes and `num_edges` of at most a quarter of all pairs ({most})"
        raise ValueError(f"power_law needs {needed}; got {num_nodes} nodes, {num_edges} edges.")
    if features < 1 or not 1 <= classes <= num_nodes:
        needed = "`features` at least 1 and `classes` from 1 to the number of nodes"
        raise ValueError(f"power_law needs {needed}; got {features=}, {classes=}, {num_nodes} nodes.")
    random = np.random.default_rng(seed)
    y = np.arange(num_nodes) % classes
    weight = np.arange(1.0, num_nodes + 1.0) ** (-1 / (EXPONENT - 1))
    order = random.permutation(num_nodes)  # so that a node's index is independent of its class and degree
    y, weight = y[order], weight[order]
    edge_index = _draw_edges(weight, y, num_edges, random)
    mean = random.standard_normal((classes, features), dtype=np.float32)
    x = mean[y] + random.standard_normal((num_nodes, features), dtype=np.float32)
    return Dataset("power-law", torch.from_numpy(x), torch.from_numpy(edge_index), torch.from_numpy(y))


def _draw_edges(
    weight: NDArray[np.float64], y: NDArray[np.int64], num_edges: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Return both directions of ``num_edges`` distinct pairs, in lexicographic order."""
    n = weight.shape[0]
    by_class = np.argsort(y, kind="stable")
    reach = np.concatenate(([0.0], np.cumsum(weight[by_class])))  # cumulative weight: a class is an interval
    bounds = reach[np.concatenate(([0], np.cumsum(np.bincount(y))))]
    keys = np.zeros(0, dtype=np.int64)
    while keys.shape[0] < num_edges:
        count = max(1000, int(1.2 * (num_edges - keys.shape[0])))
        one = _node_at(random.random(count) * reach[-1], reach, by_class)
        within = random.random(count) < WITHIN
        low, high = np.where(within, bounds[y[one]], 0.0), np.where(within, bounds[y[one] + 1], reach[-1])
        other = _node_at(low + random.random(count) * (high - low), reach, by_class)
        drawn = np.minimum(one, other) * n + np.maximum(one, other)
        keys = np.concatenate((keys, drawn[one != other]))
        keys = keys[np.sort(np.unique(keys, return_index=True)[1])]  # the first of each, in the order drawn
    low_end, high_end = np.divmod(keys[:num_edges], n)
    both = np.sort(np.concatenate((low_end * n + high_end, high_end * n + low_end)))
    return np.stack(np.divmod(both, n))


def _node_at(point: NDArray[np.float64], reach: NDArray[np.float64], by_class: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the node whose interval of cumulative weight contains each point."""
    index = np.searchsorted(reach, point, side="right") - 1
    nodes: NDArray[np.int64] = by_class[np.minimum(index, by_class.shape[0] - 1)]
    return nodes
