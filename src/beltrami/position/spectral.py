"""Eigenvectors of the graph Laplacian as positions."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import eigsh
from torch import Tensor

from beltrami.graph import Edges
from beltrami.graph.edges import check_undirected
from beltrami.graph.pagerank.kernel import symmetric_weights
from beltrami.position.base import Encoding, check_counts

SEED = 0  # of the eigensolver's start vector; the eigenvectors do not depend on it


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
        smoothest = np.argsort(-values, kind="stable")[1:wanted]
        frame = vectors[:, smoothest]
        frame = frame * np.sign(frame[np.abs(frame).argmax(0), np.arange(self.channels)])
        return torch.from_numpy(frame * np.sqrt(n)).float().to(edges.device)
