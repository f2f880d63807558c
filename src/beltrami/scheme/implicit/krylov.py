"""Linear systems of implicit steps by GMRES, with Jacobian products only: no matrix is formed."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from beltrami.scheme.adjoint.discrete import pullback
from beltrami.scheme.base import VectorField

RESTART = 30  # Krylov vectors of a cycle of GMRES
CYCLES = 10


class Linearisation:
    """f(t, y) and products with its Jacobian J there, from one evaluation; works under ``no_grad``.

    J v is the transpose of the linear map u -> J^T u, so reverse mode applied twice: f may contain autograd functions
    without a forward mode.
    """

    def __init__(self, f: VectorField, t: float, y: Tensor) -> None:
        with torch.enable_grad():
            self.y = y.detach().requires_grad_()
            self.fy = f(t, self.y)
            self.dual: tuple[Tensor, Tensor] | None = None

    @property
    def value(self) -> Tensor:
        return self.fy.detach()

    def vjp(self, v: Tensor) -> Tensor:
        """Return J^T v."""
        return pullback([self.fy], [self.y], [v])[0]

    def jvp(self, v: Tensor) -> Tensor:
        """Return J v."""
        if self.dual is None:
            with torch.enable_grad():
                u = torch.zeros_like(self.fy).requires_grad_()
                self.dual = u, pullback([self.fy], [self.y], [u], create_graph=True)[0]
        u, product = self.dual
        return pullback([product], [u], [v])[0]


def shifted(product: Callable[[Tensor], Tensor], c: float) -> Callable[[Tensor], Tensor]:
    """Return v -> v - c ``product``(v)."""
    return lambda v: torch.sub(v, product(v), alpha=c)


class LinearSolution(NamedTuple):
    """An approximate solution, the norm of its residual, and whether it met the tolerance."""

    x: Tensor
    residual: float
    converged: bool


def gmres(matvec: Callable[[Tensor], Tensor], b: Tensor, *, rtol: float) -> LinearSolution:
    """Solve A x = b for any nonsingular A, given as v -> A v, by restarted GMRES; Saad & Schultz (1986).

    Each of at most ``CYCLES`` cycles minimises |b - A x| over a Krylov space of at most ``RESTART`` dimensions, until
    |b - A x| <= rtol |b|. Vectors have b's shape, which is arbitrary.
    """
    shape = b.shape

    def flat(v: Tensor) -> Tensor:
        return matvec(v.view(shape)).reshape(-1)

    x, r = torch.zeros_like(b).flatten(), b.flatten()
    residual = norm(r)
    target = rtol * residual
    for _ in range(CYCLES):
        if not residual > target:
            break
        x = x + _cycle(flat, r, residual, target)
        r = b.flatten() - flat(x)
        before, residual = residual, norm(r)
        if not residual < before:  # stagnation: the next cycle would be the same
            break
    return LinearSolution(x.view(shape), residual, residual <= target)


def norm(x: Tensor) -> float:
    """Return the Euclidean norm; synchronises with the device."""
    return float(torch.linalg.vector_norm(x).item())


def _cycle(matvec: Callable[[Tensor], Tensor], r: Tensor, beta: float, target: float) -> Tensor:
    """Return the correction in span(r, A r, ...) that minimises the residual."""
    m = min(RESTART, r.numel())
    eps = 10.0 * torch.finfo(r.dtype).eps
    basis = r.new_empty(m + 1, r.numel())
    basis[0] = r / beta
    triangle: list[list[float]] = []  # columns of the Hessenberg matrix, made triangular by Givens rotations
    rotations: list[tuple[float, float]] = []
    g = [beta]
    for k in range(m):
        w, column = _arnoldi(matvec(basis[k]), basis[: k + 1])
        size, below = math.hypot(*column), column.pop()
        for i, (c, s) in enumerate(rotations):
            column[i], column[i + 1] = c * column[i] + s * column[i + 1], c * column[i + 1] - s * column[i]
        length = math.hypot(column[k], below)
        if not length > eps * size:  # A is singular on this Krylov space
            break
        c, s = column[k] / length, below / length
        column[k] = length
        rotations.append((c, s))
        triangle.append(column)
        g[k:] = [c * g[k], -s * g[k]]
        if not abs(g[k + 1]) > target or not below > eps * size:
            break
        basis[k + 1] = w / below
    x = [0.0] * len(triangle)
    for i in reversed(range(len(x))):  # back substitution
        x[i] = (g[i] - sum(triangle[j][i] * x[j] for j in range(i + 1, len(x)))) / triangle[i][i]
    return r.new_tensor(x) @ basis[: len(x)]


def _arnoldi(w: Tensor, basis: Tensor) -> tuple[Tensor, list[float]]:
    """Orthogonalise ``w`` against the rows of ``basis`` by classical Gram-Schmidt, applied twice for stability; return
    ``w``, and its coefficients in the basis followed by the norm of the remainder."""
    first = basis @ w
    w = torch.addmv(w, basis.T, first, alpha=-1.0)
    second = basis @ w
    w = torch.addmv(w, basis.T, second, alpha=-1.0)
    column: list[float] = torch.cat([first + second, torch.linalg.vector_norm(w)[None]]).tolist()
    return w, column
