"""Stencils that do not look at the state."""

import torch
from torch import Tensor

from beltrami.graph import Edges
from beltrami.stencil.base import Fixed, Stencil


class Keep(Stencil):
    """The input graph as it is, E' = E."""

    @property
    def synchronises(self) -> bool:
        return False

    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        return edges


class Loops(Fixed):
    """The input graph with a self-loop on every node.

    A loop adds nothing to z_j - z_i, but it enters the sums that weights are divided by: each node keeps a share of
    itself, and the flow is that much slower.

    Args:
        weight: what the loop counts for beside an edge of weight one.
    """

    def __init__(self, weight: float = 1.0) -> None:
        if not weight > 0:
            raise ValueError(f"Loops needs a positive `weight`; got {weight}. For none, use `Keep()`.")
        self.weight = weight

    def rewire(self, edges: Edges) -> Edges:
        return edges.with_loops(self.weight)


class Complete(Fixed):
    """All ordered pairs of different nodes, n (n - 1) edges: the graph of a Transformer, less its loops.

    For sets, and for graphs of some thousands of nodes.
    """

    def rewire(self, edges: Edges) -> Edges:
        nodes = torch.arange(edges.num_nodes, device=edges.device)
        j, i = torch.cartesian_prod(nodes, nodes).T if edges.num_nodes > 1 else nodes.new_zeros(2, 0)
        return Edges.build(torch.stack((j, i))[:, j != i], num_nodes=edges.num_nodes)


class Isolated(Fixed):
    """No edges at all: every node stands still. What a graph adds is measured against this."""

    def rewire(self, edges: Edges) -> Edges:
        return Edges.build(edges.edge_index[:, :0], num_nodes=edges.num_nodes)


class Symmetric(Fixed):
    """Every edge in both directions, each once: nearest neighbours are not mutual, and a diffusion may want them so.

    For use after another stencil, ``Chain(KNN(8), Symmetric())``. Of the weights of an edge and its reverse, and of
    edges that stand there twice, the largest is kept.
    """

    def rewire(self, edges: Edges) -> Edges:
        n = edges.num_nodes
        keys, place = torch.cat((edges.j * n + edges.i, edges.i * n + edges.j)).unique(return_inverse=True)
        weight = None
        if edges.weight is not None:
            both = edges.weight.repeat(2)
            weight = both.new_zeros(len(keys)).scatter_reduce(0, place, both, "amax")
        return Edges.build(torch.stack((keys // n, keys % n)), num_nodes=n, weight=weight)


class Unweighted(Fixed):
    """The same edges without their weights, so that all count alike: ``Chain(TopK(64), Unweighted())``."""

    def rewire(self, edges: Edges) -> Edges:
        return edges if edges.weight is None else Edges.build(edges.edge_index, num_nodes=edges.num_nodes)
