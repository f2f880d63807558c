"""Statistics of a graph, and of its rewiring. Self-loops are counted separately everywhere."""

from dataclasses import dataclass

import torch
from torch import Tensor

from beltrami.graph.edges import Edges


@dataclass(frozen=True)
class Statistics:
    """Counts and degrees of a graph.

    Args:
        nodes: number of nodes.
        edges: directed edges j -> i between different nodes.
        loops: edges from a node to itself.
        mean_degree, min_degree, max_degree: of the edges entering a node, without loops.
        components: connected components, ignoring the direction of edges.
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
        _, i = _without_loops(edges)
        degree = torch.bincount(i, minlength=edges.num_nodes)
        return Statistics(
            nodes=edges.num_nodes,
            edges=len(i),
            loops=edges.num_edges - len(i),
            mean_degree=len(i) / edges.num_nodes,
            min_degree=int(degree.min()),
            max_degree=int(degree.max()),
            components=int(component_of(edges).max()) + 1,
        )


@dataclass(frozen=True)
class Overlap:
    r"""Shares of common edges of two graphs, :math:`|E \cap E'| / |E|` and :math:`|E \cap E'| / |E'|`.

    Args:
        kept: share of the old edges that the new graph has.
        known: share of the new edges that the old graph had.
    """

    kept: float
    known: float

    @staticmethod
    def of(old: Edges, new: Edges) -> "Overlap":
        """Compare directed edges; parallel edges count once. A share of no edges is NaN."""
        if old.num_nodes != new.num_nodes:
            raise ValueError(
                f"`old` and `new` must have the same nodes; got {old.num_nodes} and {new.num_nodes} nodes."
            )
        before, after = ((i * old.num_nodes + j).unique() for j, i in map(_without_loops, (old, new)))
        shared = int(torch.isin(after, before, assume_unique=True).sum())
        return Overlap(kept=_share(shared, len(before)), known=_share(shared, len(after)))


def homophily(edges: Edges, y: Tensor) -> float:
    """Share of the edges, without loops, whose ends have the same class ``y`` (n,); NaN without edges."""
    if y.shape != (edges.num_nodes,):
        raise ValueError(f"`y` must hold a class for each of {edges.num_nodes} nodes; got shape {tuple(y.shape)}.")
    j, i = _without_loops(edges)
    return _share(int((y[j] == y[i]).sum()), len(i))


@dataclass(frozen=True)
class Rewiring:
    """Statistics, overlap and homophily of a graph before and after rewiring; see :func:`homophily`."""

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


def component_of(edges: Edges) -> Tensor:
    """The number of each node's connected component, (n,), ignoring the direction of edges."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    rows = edges.rows
    ones = torch.ones(edges.num_edges, dtype=torch.int8)
    pattern = (ones.numpy(), rows.index.cpu().numpy(), rows.ptr.cpu().numpy())
    _, component = connected_components(csr_array(pattern, shape=(edges.num_nodes, edges.num_nodes)), directed=False)
    return torch.from_numpy(component).long().to(edges.device)


def _without_loops(edges: Edges) -> Tensor:
    return edges.edge_index[:, edges.j != edges.i]


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
