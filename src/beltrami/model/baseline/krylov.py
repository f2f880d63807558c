"""Lanczos: a symmetric matrix on the edges, seen from a small space."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from beltrami.graph import Edges, aggregate

TINY = 1e-6  # of the matrix's size: a direction shorter than this is none


@dataclass(frozen=True, eq=False)
class Krylov:
    r"""An orthonormal basis Q of :math:`\operatorname{span}(q, A q, A^2 q, \dots)` and A seen from it.

    .. math:: A Q = Q T + r e_k^\top, \qquad T = Q^\top A Q \text{ tridiagonal}

    Where the space is exhausted before k vectors, the others are zero, and so are their rows of T.

    Args:
        a: the matrix on the edges, (m,).
        q: Q, (n, k).
        t: T, (k, k).
    """

    a: Tensor
    q: Tensor
    t: Tensor

    @cached_property
    def eigen(self) -> tuple[Tensor, Tensor]:
        """The eigenvalues of T, ascending, (k,), and its eigenvectors in the columns of B, (k, k).

        They are the Ritz values of A, and the columns of Q B its Ritz vectors: approximate eigenpairs.
        """
        values, vectors = torch.linalg.eigh(self.t)
        return values, vectors


def lanczos(a: Tensor, edges: Edges, start: Tensor, *, steps: int) -> Krylov:
    """The basis from the vector ``start``, each direction made orthogonal to all before it, twice.

    Differentiable by ``a``. Nothing is looked at on the way, so that it works under ``torch.func.vmap``.

    Args:
        a: a symmetric matrix on the edges, whose norm is about one.
        edges: the graph.
        start: (n,), not zero.
        steps: k.

    Shapes:
        ``a`` (m,), ``start`` (n,) -> Q (n, k), T (k, k).
    """
    q = (start / start.norm())[:, None]
    diagonal, beside = [], []
    for _ in range(steps):
        w = aggregate(a, q[:, -1:], edges)[:, 0]
        diagonal.append(w @ q[:, -1])
        for _ in range(2):
            w = w - q @ (q.t() @ w)
        square = w.square().sum()
        found = square > TINY**2
        size = torch.where(found, square, 1).sqrt()  # of one where there is none, whose root has a derivative
        beside.append(torch.where(found, size, 0))
        q = torch.cat((q, torch.where(found, w / size, 0)[:, None]), dim=1)
    off = torch.stack(beside)[:-1]
    t = torch.diag_embed(torch.stack(diagonal)) + torch.diag_embed(off, 1) + torch.diag_embed(off, -1)
    return Krylov(a, q[:, :-1], t)
