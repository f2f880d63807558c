"""Linear systems of which only products with the matrix are known."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Solved(NamedTuple):
    """An approximate solution ``x``, the norm of its residual, and whether that met the tolerance."""

    x: Tensor
    residual: float
    converged: bool


def gmres(
    matvec: Callable[[Tensor], Tensor], b: Tensor, *, rtol: float, restart: int = 30, max_restarts: int = 10
) -> Solved:
    """Restarted GMRES for A x = b: each cycle minimises |b - A x| over a Krylov space; Saad & Schultz (1986).

    ``A`` may be any nonsingular matrix, symmetric or not.

    Args:
        matvec: v -> A v, for vectors of b's shape.
        b: right-hand side, of any shape.
        rtol: stop at |b - A x| <= rtol |b|.
        restart: largest dimension of the Krylov space, that is of vectors kept.
        max_restarts: cycles before giving up.
    """
    shape = b.shape

    def flat(v: Tensor) -> Tensor:
        return matvec(v.view(shape)).reshape(-1)

    x, r = torch.zeros_like(b).flatten(), b.flatten()
    size = norm(r)
    target, residual = rtol * size, size
    for _ in range(max_restarts):
        if not residual > target:
            break
        x = x + _cycle(flat, r, residual, target, restart)
        r = b.flatten() - flat(x)
        before, residual = residual, norm(r)
        if not residual < before:  # stalled for good, as the next cycle would do the same again
            break
    return Solved(x.view(shape), residual, residual <= target)


def norm(x: Tensor) -> float:
    """Euclidean norm; waits for the device."""
    return float(torch.linalg.vector_norm(x).item())


def _cycle(matvec: Callable[[Tensor], Tensor], r: Tensor, beta: float, target: float, restart: int) -> Tensor:
    """The correction in span(r, A r, ...) that makes the residual smallest."""
    m = min(restart, r.numel())
    eps = 10.0 * torch.finfo(r.dtype).eps
    basis = r.new_empty(m + 1, r.numel())
    basis[0] = r / beta
    triangle: list[list[float]] = []  # columns of the Hessenberg matrix, made triangular by the rotations
    rotations: list[tuple[float, float]] = []
    g = [beta]
    for k in range(m):
        w, column = _arnoldi(matvec(basis[k]), basis[: k + 1])
        size, below = math.hypot(*column), column.pop()
        for i, (c, s) in enumerate(rotations):
            column[i], column[i + 1] = c * column[i] + s * column[i + 1], c * column[i + 1] - s * column[i]
        length = math.hypot(column[k], below)
        if not length > eps * size:  # A is singular on this space, which has nothing more to give
            break
        c, s = column[k] / length, below / length
        column[k] = length
        rotations.append((c, s))
        triangle.append(column)
        g[k:] = [c * g[k], -s * g[k]]
        if not abs(g[k + 1]) > target or not below > eps * size:
            break
        basis[k + 1] = w / below
    coefficients = _back_substitution(triangle, g)
    return r.new_tensor(coefficients) @ basis[: len(coefficients)]


def _arnoldi(w: Tensor, basis: Tensor) -> tuple[Tensor, list[float]]:
    """Make ``w`` orthogonal to the rows of ``basis``: classical Gram-Schmidt, twice, which is enough.

    Returns ``w`` and its coefficients in the basis, followed by the norm of what is left.
    """
    first = basis @ w
    w = torch.addmv(w, basis.T, first, alpha=-1.0)
    second = basis @ w
    w = torch.addmv(w, basis.T, second, alpha=-1.0)
    column: list[float] = torch.cat([first + second, torch.linalg.vector_norm(w)[None]]).tolist()
    return w, column


def _back_substitution(columns: Sequence[Sequence[float]], g: Sequence[float]) -> list[float]:
    x = [0.0] * len(columns)
    for i in reversed(range(len(columns))):
        rest = g[i] - sum(columns[j][i] * x[j] for j in range(i + 1, len(columns)))
        x[i] = rest / columns[i][i]
    return x
