"""Heat kernel rows as positions."""

import math
from functools import partial

import torch
from torch import Tensor

from beltrami.graph import Edges
from beltrami.graph.edges import check_undirected
from beltrami.graph.pagerank.kernel import heat_kernel
from beltrami.position.base import Encoding, Progress
from beltrami.position.kernel import check_top, kernel_rows


class Heat(Encoding):
    r"""Heat kernel: :math:`U = e^{-t (I - S)}`, the largest entries of each row.

    S is the symmetrically normalised adjacency matrix with self-loops; columns are scaled to sum to one, as for
    :class:`PPR`. Where PageRank mixes walks of every length, falling off geometrically, the lengths here are Poisson
    with mean t: positions see to one distance.

    Args:
        time: how long the heat spreads, t.
        top: entries kept in each row; None keeps them all, which takes O(n^2) memory.
        progress: told how many columns are solved.

    Shapes:
        -> sparse (n, n); dense if ``top`` is None.
    """

    def __init__(self, *, time: float, top: int | None = 64, progress: Progress | None = None) -> None:
        if not 0 < time < math.inf:
            raise ValueError(f"Heat needs a positive, finite `time`; got {time}.")
        check_top(top, name="Heat")
        self.time = time
        self.top = top
        self.progress = progress

    def __call__(self, edges: Edges, generator: torch.Generator | None = None) -> Tensor:
        check_undirected(edges, needed_by="Heat")
        kernel = partial(heat_kernel, time=self.time)
        return kernel_rows(edges, kernel, top=self.top, what="Heat", progress=self.progress)
