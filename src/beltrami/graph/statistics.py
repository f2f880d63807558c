"""Statistics of a graph, and of its rewiring. Self-loops are counted separately everywhere."""

from dataclasses import dataclass

import torch
from torch import Tensor

from beltrami.graph.edges import Edges


@dataclass(frozen=True)
class Statistics:
    """Counts of a graph: directed edges between different nodes, edges from a node to itself (loops), the degrees
    (edges entering a node, without loops), and the connected components, ignoring the direction of edges."""

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
class Rewiring:
    r"""A graph E before and E' after rewiring: statistics, :func:`homophily`, and the shares of common edges, where
    parallel edges count once. A share of no edges is NaN."""

    before: Statistics
    after: Statistics
    kept: float  # share of the old edges that the new graph has, |E and E'| / |E|
    known: float  # share of the new edges that the old graph had, |E and E'| / |E'|
    homophily_before: float
    homophily_after: float

    @staticmethod
    def of(old: Edges, new: Edges, y: Tensor) -> "Rewiring":
        if old.num_nodes != new.num_nodes:
            raise ValueError(f"`old` and `new` must have the same nodes; got {old.num_nodes} and {new.num_nodes}.")
        before, after = ((i * old.num_nodes + j).unique() for j, i in map(_without_loops, (old, new)))
        shared = int(torch.isin(after, before, assume_unique=True).sum())
        kept, known = _share(shared, len(before)), _share(shared, len(after))
        return Rewiring(Statistics.of(old), Statistics.of(new), kept, known, homophily(old, y), homophily(new, y))


def homophily(edges: Edges, y: Tensor) -> float:
    """Share of the edges, without loops, whose ends have the same class ``y`` (n,); NaN without edges. Edges of nodes
    with a negative, unknown class do not count."""
    if y.shape != (edges.num_nodes,):
        raise ValueError(f"`y` must hold a class for each of {edges.num_nodes} nodes; got shape {tuple(y.shape)}.")
    j, i = _without_loops(edges)
    known = (y[j] >= 0) & (y[i] >= 0)
    return _share(int(((y[j] == y[i]) & known).sum()), int(known.sum()))


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
