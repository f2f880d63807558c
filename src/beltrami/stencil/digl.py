r"""DIGL: the graph that diffusion itself makes of a graph (Klicpera et al. 2019).

The kernel is personalised PageRank, eq. (12), of the graph with self-loops, :math:`K = \rho (I - (1 - \rho) S)^{-1}`
with :math:`S = D^{-1/2} A D^{-1/2}`. Its values stay on the edges as their measure (``Edges.weight``): a diffusivity
weighs them with its own scores, and ``RandomWalk`` alone diffuses by K as DIGL does. Where the edges should count
alike, ``Chain(TopK(k), Unweighted())`` drops the values.
"""

from functools import partial

import torch
from torch import Tensor

from beltrami.graph import Edges
from beltrami.graph.edges import check_undirected
from beltrami.graph.pagerank.kernel import personalised_pagerank, top_entries
from beltrami.graph.pagerank.push import entries_above, largest_entries
from beltrami.stencil.base import Fixed

SMALL = 4096  # nodes up to which every column is solved for: exact, and a matter of seconds


class TopK(Fixed):
    r"""The ``k`` largest entries of K in each node's row: edges j -> i with weight :math:`K_{ij}`.

    A node's own entry is mostly the largest and counts among the k, as in DIGL: it becomes a self-loop. Rows choose
    for themselves, so an edge need not have its reverse; ``Chain(TopK(k), Symmetric())`` gives it one of its weight.
    Exact up to 4096 nodes; beyond that by push, in time O(n), where about one entry in a hundred may differ. Push is
    compiled, and quicker, where numba is installed (``beltrami[fast]``).

    Args:
        k: entries in each row; fewer where a component is smaller.
        restart: restart probability :math:`\rho`.

    Shapes:
        ``edges`` over n nodes, undirected -> at most n k edges, weighted.
    """

    def __init__(self, k: int, *, restart: float = 0.05) -> None:
        if k < 1:
            raise ValueError(f"TopK needs `k` at least 1; got {k}.")
        _check_restart("TopK", restart)
        self.k, self.restart = k, restart

    @torch.no_grad()
    def rewire(self, edges: Edges) -> Edges:
        check_undirected(edges, needed_by="TopK")
        looped = edges.with_loops(1.0)
        if edges.num_nodes > SMALL:  # one node after the other is no work for a GPU
            kernel = largest_entries(looped.to("cpu"), restart=self.restart, top=self.k)
            return _as_edges(kernel.to(edges.device))
        return _as_edges(top_entries(looped, partial(personalised_pagerank, restart=self.restart), top=self.k).t())


class Threshold(Fixed):
    r"""The entries of K that are at least ``least``: edges j -> i with weight :math:`K_{ij}`, in both directions.

    The degree follows the graph, where :class:`TopK` gives every node the same: hubs, whose walk is spread thin, may
    keep little. A node's own entry becomes a self-loop. Exact up to 4096 nodes, by push beyond, where an entry within
    about 1e-4 of ``least`` may be taken for the other side, in one direction alone.

    Args:
        least: the smallest value that makes an edge; DIGL's epsilon, about 1e-4 to 1e-2.
        restart: restart probability :math:`\rho`.

    Shapes:
        ``edges`` over n nodes, undirected -> any number of edges, weighted.
    """

    def __init__(self, least: float, *, restart: float = 0.05) -> None:
        if not 0 < least < 1:
            raise ValueError(f"Threshold needs `least` between 0 and 1; got {least}.")
        _check_restart("Threshold", restart)
        self.least, self.restart = least, restart

    @torch.no_grad()
    def rewire(self, edges: Edges) -> Edges:
        check_undirected(edges, needed_by="Threshold")
        looped = edges.with_loops(1.0)
        if edges.num_nodes > SMALL:
            kernel = entries_above(looped.to("cpu"), restart=self.restart, least=self.least)
            return _as_edges(kernel.to(edges.device))
        kernel = top_entries(looped, partial(personalised_pagerank, restart=self.restart), top=None)
        return _as_edges(torch.where(kernel >= self.least, kernel, 0).to_sparse())


def _as_edges(kernel: Tensor) -> Edges:
    """A sparse matrix as weighted edges: entry (i, j) is the edge j -> i."""
    kernel = kernel.coalesce()
    i, j = kernel.indices()
    return Edges.build(torch.stack((j, i)), num_nodes=kernel.shape[0], weight=kernel.values())


def _check_restart(name: str, restart: float) -> None:
    if not 0 < restart < 1:
        raise ValueError(f"{name} needs `restart` between 0 and 1; got {restart}.")
