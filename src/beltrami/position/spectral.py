"""Positions from the Laplacian: rows of personalised PageRank and of the heat kernel, and eigenvectors."""

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import eigsh
from torch import Tensor

from beltrami.arguments import checked
from beltrami.graph import Edges
from beltrami.graph.edges import check_undirected
from beltrami.graph.pagerank.kernel import (
    Kernel,
    check_heat_time,
    check_restart,
    heat_kernel,
    personalised_pagerank,
    symmetric_weights,
    top_entries,
)
from beltrami.graph.pagerank.push import largest_entries
from beltrami.position.base import Encoding, Progress, check_counts, check_positive, reporter

SEED = 0  # of the eigensolver's start vector; the eigenvectors do not depend on it
LARGE = 32_768  # number of nodes above which the push algorithm is much faster than solving for every column


@checked
@dataclass(frozen=True, kw_only=True)
class PPR(Encoding):
    r"""Personalised PageRank, eq. (12): :math:`U = \rho (I - (1 - \rho) S)^{-1}`, the largest entries of each row.

    S is the symmetrically normalised adjacency matrix with self-loops; columns are scaled to sum to one, as published.
    The positions have width n and depend on the whole graph. Above 32,768 nodes the largest entries are found by the
    push algorithm in time O(n), where about one in a hundred may differ. ``restart`` is :math:`\rho = 1 - \beta`;
    ``top`` is the number of entries kept in each row, or None for all, which needs O(n^2) memory. -> sparse (n, n),
    dense if ``top`` is None.
    """

    restart: float = 0.05
    top: int | None = 64
    progress: Progress | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 < self.restart < 1:
            raise ValueError(f"PPR needs `restart` between 0 and 1; got {self.restart}.")
        check_restart(self.restart)
        if self.top is not None:
            check_counts(self, "top")

    @checked
    def __call__(self, edges: Edges, generator: torch.Generator | None = None) -> Tensor:
        check_undirected(edges, needed_by="PPR")
        if self.top is not None and edges.num_nodes > LARGE:
            rows = largest_entries(edges.with_loops(1.0).to("cpu"), restart=self.restart, top=self.top)
            return _with_column_sums_one(rows.to(edges.device))
        return _kernel_rows(self, edges, partial(personalised_pagerank, restart=self.restart))


@checked
@dataclass(frozen=True, kw_only=True)
class Heat(Encoding):
    r"""Heat kernel: :math:`U = e^{-t (I - S)}`, the largest entries of each row.

    S and the scaling of columns are those of :class:`PPR`. The lengths of walks are Poisson distributed with mean t,
    those of PageRank geometrically: the heat kernel resolves one distance, PageRank all of them. ``top`` is as
    for :class:`PPR`.
    """

    time: float
    top: int | None = 64
    progress: Progress | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_positive(self, "time")
        check_heat_time(self.time)
        if self.top is not None:
            check_counts(self, "top")

    @checked
    def __call__(self, edges: Edges, generator: torch.Generator | None = None) -> Tensor:
        check_undirected(edges, needed_by="Heat")
        return _kernel_rows(self, edges, partial(heat_kernel, time=self.time))


@checked
@dataclass(frozen=True)
class LaplacianEigenvectors(Encoding):
    r"""The eigenvectors of :math:`L = I - D^{-1/2} A D^{-1/2}` of the ``channels`` smallest non-zero eigenvalues.

    Dense, low-dimensional positions: the modes in which heat decays most slowly. A is the adjacency matrix of an
    undirected graph with a self-loop on every node, as for :class:`PPR`. Signs are fixed so that the entry of largest
    magnitude of each vector is positive. -> (n, channels), columns of length :math:`\sqrt n`.
    """

    channels: int

    def __post_init__(self) -> None:
        check_counts(self, "channels")

    @checked
    def __call__(self, edges: Edges, generator: torch.Generator | None = None) -> Tensor:
        check_undirected(edges, needed_by="LaplacianEigenvectors")
        n, wanted = edges.num_nodes, self.channels + 1
        if wanted >= n:
            raise ValueError(f"`channels` must be below the number of nodes less one; got {self.channels}, {n} nodes.")
        looped = edges.with_loops(1.0)
        weights = symmetric_weights(looped).double().cpu().numpy()
        j, i = looped.edge_index.cpu().numpy()
        matrix = sp.csr_matrix((weights, (i, j)), shape=(n, n))
        if wanted > n // 2:
            values, vectors = np.linalg.eigh(matrix.toarray())
        else:
            start = np.random.default_rng(SEED).standard_normal(n)
            values, vectors = eigsh(matrix, k=wanted, which="LA", v0=start, tol=1e-10)
        frame = vectors[:, np.argsort(-values, kind="stable")[1:wanted]]  # the smoothest first
        frame = frame * np.sign(frame[np.abs(frame).argmax(0), np.arange(self.channels)])
        return torch.from_numpy(frame * np.sqrt(n)).float().to(edges.device)


def _kernel_rows(encoding: PPR | Heat, edges: Edges, kernel: Kernel) -> Tensor:
    """Return the largest entries of every row of a symmetric kernel of the graph with self-loops, columns scaled."""
    report = reporter(encoding.progress, type(encoding).__name__, edges.num_nodes)
    columns = top_entries(edges.with_loops(1.0), kernel, top=encoding.top, on_columns=report)
    if encoding.top is None:
        return columns.t() / columns.sum(1)
    return _with_column_sums_one(columns.t())


def _with_column_sums_one(rows: Tensor) -> Tensor:
    """Return a sparse (n, n) matrix with every column scaled to sum to one."""
    rows = rows.coalesce()
    _, column = rows.indices()
    total = rows.values().new_zeros(rows.shape[1]).index_add(0, column, rows.values())
    values = rows.values() / total[column]
    return torch.sparse_coo_tensor(rows.indices(), values, rows.shape, check_invariants=False).coalesce()
