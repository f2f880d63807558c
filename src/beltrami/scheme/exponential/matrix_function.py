"""phi_1 of a matrix times a vector, as a polynomial sum with a bound of its error."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from beltrami.errors import SolverError
from beltrami.scheme.exponential.polynomial import Chebyshev, Expansion, Taylor
from beltrami.scheme.exponential.recurrence_sum import extend
from beltrami.scheme.vector_field import LinearVectorField

LARGEST_GROWTH = 100.0  # of Chebyshev vectors; cancellation then costs two digits
EXPECTED_GROWTH = 2.0
EXPECTED_SLOPE = 3.0  # size of f(y0) relative to y0: a bound for alpha (B - I) y + beta y with alpha, |beta| <= 1
FIRST_CHECK = 8  # terms after which the growth of the vectors, and thus the number of terms, is estimated


@dataclass(frozen=True)
class PolynomialSum:
    """A sum over the vectors w_k = P_k(B) w, with a bound of its error.

    Args:
        expansion: the polynomials P_k.
        blocks: the vectors w_0 = w to w_K, without a graph, stacked in blocks (k, 1, ...).
        size: how many coefficients to compute, of which the first K + 1 are used.
        bound: of the error, relative to the time and the size of w.
        products: products with B that were needed.
    """

    expansion: Expansion
    blocks: tuple[Tensor, ...]
    size: int
    bound: float
    products: int

    @property
    def count(self) -> int:
        """The number of terms K + 1."""
        return sum(map(len, self.blocks))


def expand(f: LinearVectorField, w: Tensor, s: float, *, target: float) -> PolynomialSum:
    """Return a short sum for phi_1(s (B - I)) w whose error is at most ``target`` times the size of ``w``.

    In Chebyshev polynomials if these need fewer terms than powers of B, which is not so for spectra far from real.
    """
    taylor = Taylor()
    tails, _ = taylor.bounds(s, size=taylor.size(s))
    powers = _first(tails <= target, above=0) or len(tails) - 1
    found, products = _chebyshev_sum(f, w, s, target, limit=powers)
    if found is not None:
        return found
    blocks: list[Tensor] = []
    _extend(blocks, taylor, f, w, powers)
    return PolynomialSum(taylor, tuple(blocks), taylor.size(s), float(tails[powers]), products + powers)


def _chebyshev_sum(
    f: LinearVectorField, w: Tensor, s: float, target: float, *, limit: int
) -> tuple[PolynomialSum | None, int]:
    """Return the sum, or None if it needs more than ``limit`` terms, and the number of products made."""
    chebyshev, degree = Chebyshev(), 0
    blocks: list[Tensor] = []
    size = chebyshev.size(s)
    p, q = chebyshev.bounds(s, size=size)
    k, growth = torch.arange(len(p)), torch.full_like(p, EXPECTED_GROWTH)
    while True:
        needed = _first(growth * (p + q) <= target, above=degree)
        if needed is None or needed > limit:
            break
        degree = needed if degree else min(needed, FIRST_CHECK)
        _extend(blocks, chebyshev, f, w, degree)
        last, before = _relative_sizes(blocks, f.norm)
        bound = float(p[degree]) * last + float(q[degree]) * before
        if bound <= target:
            return PolynomialSum(chebyshev, tuple(blocks), size, bound, degree), degree
        largest = max(last, before, 1.0)
        if largest > LARGEST_GROWTH:
            break
        growth = largest ** (k / degree)
    return None, degree


def fixed_degree(
    f: LinearVectorField, time: float, *, rtol: float, rate: float = 1.0, slope: float = EXPECTED_SLOPE
) -> tuple[Expansion, int, int]:
    """Return the expansion, its degree K and the number of coefficients to compute, without reading the vectors w_k.

    Assumes a ``rate`` alpha and a ``slope``, the size of f(y0) relative to y0. Assumes that Chebyshev vectors at most
    double in size; if B is not structurally symmetric, uses powers of B, which do not grow.
    """
    s = rate * time
    target = max(rtol / (max(slope, 1e-30) * time), torch.finfo(torch.float64).eps)
    expansion, growth = (Chebyshev(), EXPECTED_GROWTH) if f.structurally_symmetric else (Taylor(), 1.0)
    size = expansion.size(s)
    p, q = expansion.bounds(s, size=size)
    degree = _first(growth * (p + q) <= target, above=0)
    return expansion, len(p) - 1 if degree is None else degree, size


def mean_norm(x: Tensor, p: float) -> Tensor:
    """Return the p-norm as a mean over the values: for p = 1, 2, inf the mean size, the rms, the largest size."""
    norm: Tensor = torch.linalg.vector_norm(x, p)
    return norm if math.isinf(p) else norm / x.numel() ** (1.0 / p)


def _first(condition: Tensor, *, above: int) -> int | None:
    """Return the first index above ``above`` where the condition holds, or None."""
    indices = condition[above + 1 :].nonzero()
    return above + 1 + int(indices[0]) if len(indices) else None


def _extend(blocks: list[Tensor], expansion: Expansion, f: LinearVectorField, w: Tensor, degree: int) -> None:
    extend(blocks, w.detach()[None], f.a.detach()[None], f.pattern, expansion.factor, degree=degree)


def _relative_sizes(blocks: list[Tensor], p: float) -> tuple[float, float]:
    """Return the sizes of the last two vectors relative to the first; synchronises with the device."""
    *_, before, last = (term for block in blocks[-2:] for term in block)
    sizes = torch.stack([torch.linalg.vector_norm(x, p) for x in (blocks[0][0], before, last)]).tolist()
    if not math.isfinite(sizes[-1]):
        raise SolverError("Exponential met a vector that is not finite: check the weights of the field.")
    return (sizes[2] / sizes[0], sizes[1] / sizes[0]) if sizes[0] > 0.0 else (0.0, 0.0)
