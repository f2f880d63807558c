"""Personalised PageRank rows as positions."""

from functools import partial

import torch
from torch import Tensor

from beltrami.graph import Edges
from beltrami.graph.edges import check_undirected
from beltrami.graph.pagerank.kernel import personalised_pagerank
from beltrami.graph.pagerank.push import largest_entries
from beltrami.position.base import Encoding, Progress
from beltrami.position.kernel import check_top, even_columns, kernel_rows

LARGE = 32_768  # nodes beyond which pushing is quicker than solving for every column, by far


class PPR(Encoding):
    r"""Personalised PageRank, eq. (12): :math:`U = \rho (I - (1 - \rho) S)^{-1}`, the largest entries of each row.

    S is the symmetrically normalised adjacency matrix with self-loops; columns are scaled to sum to one, as published.
    Positions of width n that see the whole graph at once; nearly free when sparse. Beyond 32,768 nodes the largest
    entries are found by push, in time O(n), where about one in a hundred may differ.

    Args:
        restart: restart probability :math:`\rho = 1 - \beta`.
        top: entries kept in each row; None keeps them all, which takes O(n^2) memory.
        progress: told how many columns are solved, where they are.

    Shapes:
        -> sparse (n, n); dense if ``top`` is None.
    """

    def __init__(self, *, restart: float = 0.05, top: int | None = 64, progress: Progress | None = None) -> None:
        if not 0 < restart < 1:
            raise ValueError(f"PPR needs `restart` between 0 and 1; got {restart}.")
        check_top(top, name="PPR")
        self.restart = restart
        self.top = top
        self.progress = progress

    def __call__(self, edges: Edges, generator: torch.Generator | None = None) -> Tensor:
        check_undirected(edges, needed_by="PPR")
        if self.top is not None and edges.num_nodes > LARGE:
            rows = largest_entries(edges.with_loops(1.0).to("cpu"), restart=self.restart, top=self.top)
            return even_columns(rows.to(edges.device))
        kernel = partial(personalised_pagerank, restart=self.restart)
        return kernel_rows(edges, kernel, top=self.top, what="PPR", progress=self.progress)
