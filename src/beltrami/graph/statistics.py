"""Statistics: what a graph looks like, and what a rewiring made of it. Self-loops are counted apart."""

from dataclasses import dataclass

import torch
from torch import Tensor

from beltrami.graph.edges import Edges


@dataclass(frozen=True)
class Statistics:
    """A graph in a few numbers.

    Args:
        nodes: number of nodes.
        edges: directed edges j -> i, those from a node to itself apart.
        loops: edges from a node to itself.
        mean_degree, min_degree, max_degree: of the edges that enter a node, loops apart.
        components: connected components, whatever the direction of the edges.
    """

    nodes: int
    edges: int
    loops: int
    mean_degree: float
    min_degree: int
    max_degree: int
    components: int

    @staticmethod
    def of(edges: Edges) -> "Statistics":
        j, i = _without_loops(edges)
        degree = torch.bincount(i, minlength=edges.num_nodes)
        return Statistics(
            nodes=edges.num_nodes,
            edges=len(i),
            loops=edges.num_edges - len(i),
            mean_degree=len(i) / edges.num_nodes,
            min_degree=int(degree.min()),
            max_degree=int(degree.max()),
            components=_count_components(j, i, num_nodes=edges.num_nodes),
        )


@dataclass(frozen=True)
class Overlap:
    r"""How much two graphs on the same nodes share, :math:`|E \cap E'| / |E|` and :math:`|E \cap E'| / |E'|`.

    Args:
        kept: share of the old edges that the new graph has too.
        known: share of the new edges that the old graph had already.
    """

    kept: float
    known: float

    @staticmethod
    def of(old: Edges, new: Edges) -> "Overlap":
        """Of directed edges, each counted once, loops apart; NaN where there are none to take a share of."""
        if old.num_nodes != new.num_nodes:
            raise ValueError(f"graphs overlap on the same nodes; got {old.num_nodes} and {new.num_nodes} nodes.")
        before, after = _keys(old), _keys(new)
        shared = int(torch.isin(after, before, assume_unique=True).sum())
        return Overlap(kept=_share(shared, len(before)), known=_share(shared, len(after)))


def homophily(edges: Edges, y: Tensor) -> float:
    """Share of the edges, loops apart, whose ends have the same class ``y`` (n,); NaN without edges."""
    if y.shape != (edges.num_nodes,):
        raise ValueError(f"`y` must hold a class for each of {edges.num_nodes} nodes; got shape {tuple(y.shape)}.")
    j, i = _without_loops(edges)
    return _share(int((y[j] == y[i]).sum()), len(i))


@dataclass(frozen=True)
class Rewiring:
    """What became of a graph whose nodes have classes.

    Args:
        before, after: either graph.
        overlap: what they share.
        homophily_before, homophily_after: of either; see :func:`homophily`.
    """

    before: Statistics
    after: Statistics
    overlap: Overlap
    homophily_before: float
    homophily_after: float

    @staticmethod
    def of(old: Edges, new: Edges, y: Tensor) -> "Rewiring":
        return Rewiring(
            Statistics.of(old), Statistics.of(new), Overlap.of(old, new), homophily(old, y), homophily(new, y)
        )


def _without_loops(edges: Edges) -> Tensor:
    return edges.edge_index[:, edges.j != edges.i]


def _keys(edges: Edges) -> Tensor:
    """One number for each distinct edge."""
    j, i = _without_loops(edges)
    keys: Tensor = (i * edges.num_nodes + j).unique()
    return keys


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def _count_components(j: Tensor, i: Tensor, *, num_nodes: int) -> int:
    import numpy as np
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = (i.cpu().numpy(), j.cpu().numpy())
    adjacency = coo_array((np.ones(len(i), dtype=np.int8), ends), shape=(num_nodes, num_nodes))
    count, _ = connected_components(adjacency, directed=False)
    return int(count)
