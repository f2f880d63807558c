"""Personalised PageRank rows as positions."""

import torch
from torch import Tensor

from beltrami.graph import Edges
from beltrami.graph.kernel import top_entries
from beltrami.position.base import Encoding


class PPR(Encoding):
    r"""Personalised PageRank, eq. (12): :math:`U = \rho (I - (1 - \rho) S)^{-1}`, the largest entries of each row.

    S is the symmetrically normalised adjacency matrix with self-loops; columns are scaled to sum to one, as published.
    Positions of width n that see the whole graph at once; nearly free when sparse.

    Args:
        restart: restart probability :math:`\rho = 1 - \beta`.
        top: entries kept in each row.

    Shapes:
        -> sparse (n, n).
    """

    def __init__(self, *, restart: float = 0.05, top: int = 64) -> None:
        if not 0 < restart < 1:
            raise ValueError(f"PPR needs `restart` between 0 and 1; got {restart}.")
        if top < 1:
            raise ValueError(f"PPR needs `top` at least 1; got {top}.")
        self.restart = restart
        self.top = top

    def __call__(self, edges: Edges, generator: torch.Generator | None = None) -> Tensor:
        kernel = top_entries(edges.with_loops(1.0), restart=self.restart, top=self.top).t().coalesce()
        row, column = kernel.indices()
        total = kernel.values().new_zeros(edges.num_nodes).index_add(0, column, kernel.values())
        values = kernel.values() / total[column]
        index = torch.stack((row, column))
        return torch.sparse_coo_tensor(index, values, kernel.shape, check_invariants=False).coalesce()
