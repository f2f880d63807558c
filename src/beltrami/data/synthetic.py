"""Synthetic graphs of any size, for measurements that no file is needed for."""

import numpy as np
import torch
from numpy.typing import NDArray

from beltrami.data.dataset import Dataset

EXPONENT = 2.5  # of the degrees' tail, as citation and social graphs have it
WITHIN = 0.6  # the share of edges drawn within a class


def power_law(num_nodes: int, num_edges: int, *, seed: int, features: int = 16, classes: int = 8) -> Dataset:
    r"""An undirected graph whose degrees fall as :math:`P(d) \sim d^{-5/2}`, with classes that are communities.

    Every node has a weight, its expected degree up to a factor, :math:`w_r = r^{-2/3}` at rank r = 1, 2, .... An edge
    joins a node drawn by weight to another drawn by weight, three times of five from the first one's class and else
    from the whole graph; repeated edges and loops are drawn again, until there are exactly ``num_edges``. A few
    nodes may stay without an edge. Features are normal about a mean for each class. Vectorised: a million edges take
    about a second.

    Args:
        num_nodes: n.
        num_edges: undirected edges, at most a quarter of all pairs.
        seed: of the only generator; the same seed gives the same graph.
        features: width of ``x``.
        classes: how many classes, of nearly equal size.
    """
    _check(num_nodes, num_edges, features, classes)
    random = np.random.default_rng(seed)
    y = np.arange(num_nodes) % classes
    weight = np.arange(1.0, num_nodes + 1.0) ** (-1 / (EXPONENT - 1))
    order = random.permutation(num_nodes)  # so that a node's number says nothing of its class or degree
    y, weight = y[order], weight[order]
    edge_index = _draw_edges(weight, y, num_edges, random)
    mean = random.standard_normal((classes, features), dtype=np.float32)
    x = mean[y] + random.standard_normal((num_nodes, features), dtype=np.float32)
    return Dataset(
        name="power-law", x=torch.from_numpy(x), edge_index=torch.from_numpy(edge_index), y=torch.from_numpy(y)
    )


def _draw_edges(
    weight: NDArray[np.float64], y: NDArray[np.int64], num_edges: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Both directions of ``num_edges`` distinct pairs, in lexicographic order."""
    n = weight.shape[0]
    by_class = np.argsort(y, kind="stable")
    reach = np.concatenate(([0.0], np.cumsum(weight[by_class])))  # one axis, on which a class is an interval
    bounds = reach[np.concatenate(([0], np.cumsum(np.bincount(y))))]
    keys = np.zeros(0, dtype=np.int64)
    while keys.shape[0] < num_edges:
        count = max(1000, int(1.2 * (num_edges - keys.shape[0])))
        one = _land(random.random(count) * reach[-1], reach, by_class)
        within = random.random(count) < WITHIN
        low, high = np.where(within, bounds[y[one]], 0.0), np.where(within, bounds[y[one] + 1], reach[-1])
        other = _land(low + random.random(count) * (high - low), reach, by_class)
        drawn = np.minimum(one, other) * n + np.maximum(one, other)
        keys = np.concatenate((keys, drawn[one != other]))
        keys = keys[np.sort(np.unique(keys, return_index=True)[1])]  # the first of each, in the order they came
    low_end, high_end = np.divmod(keys[:num_edges], n)
    both = np.sort(np.concatenate((low_end * n + high_end, high_end * n + low_end)))
    return np.stack(np.divmod(both, n))


def _land(point: NDArray[np.float64], reach: NDArray[np.float64], by_class: NDArray[np.int64]) -> NDArray[np.int64]:
    """The node on whose stretch of the axis each point lies."""
    place = np.searchsorted(reach, point, side="right") - 1
    nodes: NDArray[np.int64] = by_class[np.minimum(place, by_class.shape[0] - 1)]
    return nodes


def _check(num_nodes: int, num_edges: int, features: int, classes: int) -> None:
    most = num_nodes * (num_nodes - 1) // 8
    if num_nodes < 2 or not 0 <= num_edges <= most:
        raise ValueError(
            f"power_law needs two nodes or more and `num_edges` of at most a quarter of all pairs ({most}); "
            f"got {num_nodes} nodes, {num_edges} edges."
        )
    if features < 1 or not 1 <= classes <= num_nodes:
        raise ValueError(
            f"power_law needs `features` at least 1 and `classes` from 1 to the number of nodes; "
            f"got features={features}, classes={classes}, {num_nodes} nodes."
        )
