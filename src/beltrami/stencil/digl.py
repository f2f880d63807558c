r"""DIGL: graph diffusion as rewiring (Klicpera et al. 2019).

The kernel is personalised PageRank, eq. (12), of the graph with self-loops, :math:`K = \rho (I - (1 - \rho) S)^{-1}`
with :math:`S = D^{-1/2} A D^{-1/2}` and the ``restart`` probability :math:`\rho`. Its values become the weights of the
edges: a diffusivity multiplies them by its own scores, and ``RandomWalk`` diffuses by K as DIGL does. ``Chain(TopK(k),
Unweighted())`` drops the values.
"""

from dataclasses import KW_ONLY, dataclass
from functools import partial

import torch
from torch import Tensor

from beltrami.arguments import checked
from beltrami.graph import Edges
from beltrami.graph.edges import check_undirected
from beltrami.graph.pagerank.kernel import check_restart, personalised_pagerank, top_entries
from beltrami.graph.pagerank.push import entries_above, largest_entries
from beltrami.stencil.base import Fixed

SMALL = 4096  # largest number of nodes for which every column is solved exactly, within seconds


@checked
@dataclass(frozen=True)
class TopK(Fixed):
    r"""The ``k`` largest entries of K in each row: edges j -> i with weight :math:`K_{ij}`.

    The diagonal entry, usually the largest, is one of the k, as in DIGL, and becomes a self-loop. The reverse of an
    edge may be missing; ``Chain(TopK(k), Symmetric())`` adds it with the same weight. Exact up to 4096 nodes; for
    larger graphs by the push algorithm in time O(n), where about one entry in a hundred may differ; push needs numba
    (``beltrami[fast]``). Rows have fewer than k entries where a component is smaller.
    """

    k: int
    _: KW_ONLY
    restart: float = 0.05

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"TopK needs `k` at least 1; got {self.k}.")
        _check_restart(self)

    @torch.no_grad()
    def rewire(self, edges: Edges) -> Edges:
        check_undirected(edges, needed_by="TopK")
        looped, rho = edges.with_loops(1.0), self.restart
        if edges.num_nodes > SMALL:  # push is sequential, so it runs on the CPU
            return _as_edges(largest_entries(looped.to("cpu"), restart=rho, top=self.k).to(edges.device))
        return _as_edges(top_entries(looped, partial(personalised_pagerank, restart=rho), top=self.k).t())


@checked
@dataclass(frozen=True)
class Threshold(Fixed):
    r"""The entries of K that are at least ``least``: edges j -> i with weight :math:`K_{ij}`, in both directions.

    Unlike with :class:`TopK`, hubs, whose probability is spread over many nodes, may keep few edges. Diagonal entries
    become self-loops. Exact up to 4096 nodes; for larger graphs by the push algorithm, where an entry within about 1e-4
    of ``least`` may be misjudged, in one direction only. DIGL calls it epsilon and takes 1e-4 to 1e-2.
    """

    least: float
    _: KW_ONLY
    restart: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.least < 1:
            raise ValueError(f"Threshold needs `least` between 0 and 1; got {self.least}.")
        _check_restart(self)

    @torch.no_grad()
    def rewire(self, edges: Edges) -> Edges:
        check_undirected(edges, needed_by="Threshold")
        looped, rho = edges.with_loops(1.0), self.restart
        if edges.num_nodes > SMALL:
            return _as_edges(entries_above(looped.to("cpu"), restart=rho, least=self.least).to(edges.device))
        kernel = top_entries(looped, partial(personalised_pagerank, restart=rho), top=None)
        return _as_edges(torch.where(kernel >= self.least, kernel, 0).to_sparse())


def _check_restart(stencil: TopK | Threshold) -> None:
    if not 0 < stencil.restart < 1:
        raise ValueError(f"{type(stencil).__name__} needs `restart` between 0 and 1; got {stencil.restart}.")
    check_restart(stencil.restart)


def _as_edges(kernel: Tensor) -> Edges:
    """Return the edges of a sparse matrix: entry (i, j) is the weight of the edge j -> i."""
    kernel = kernel.coalesce()
    i, j = kernel.indices()
    return Edges.build(torch.stack((j, i)), num_nodes=kernel.shape[0], weight=kernel.values())
