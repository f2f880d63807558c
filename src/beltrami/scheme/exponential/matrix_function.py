"""A function of a matrix times a vector, as a sum with a bound of its error."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from beltrami.errors import SolverError
from beltrami.scheme.exponential.polynomial import Chebyshev, Expansion, Taylor
from beltrami.scheme.exponential.recurrence_sum import extend
from beltrami.scheme.linear_field import LinearVectorField

LARGEST_GROWTH = 100.0  # of Chebyshev vectors, two digits of which are then lost to cancellation
FIRST_GUESS = 2.0  # of their growth
STEEP = 3.0  # the size of a slope in sizes of the state: at most this for alpha (B - I) y + beta y with |beta| <= 1
FIRST_LOOK = 8  # terms after which it is known how they grow, so how many are needed and whether they are too many


@dataclass(frozen=True)
class Series:
    """A sum over the vectors w_k = P_k(B) w, with what it leaves out.

    Args:
        expansion: the polynomials P_k.
        blocks: the vectors w_0 = w to w_K, without a graph, stacked as they were found, each (k, 1, ...).
        size: how many coefficients to compute, of which the first K + 1 are used.
        bound: of the error, in units of the time and the size of w.
        products: how many products it took to find.
    """

    expansion: Expansion
    blocks: tuple[Tensor, ...]
    size: int
    bound: float
    products: int

    @property
    def count(self) -> int:
        """Of the terms, K + 1."""
        return sum(map(len, self.blocks))


def expand(f: LinearVectorField, w: Tensor, s: float, *, target: float) -> Series:
    """A short sum for phi_1(s (B - I)) w whose error is at most ``target`` times the size of ``w``."""
    taylor = Taylor()
    tails, _ = taylor.bounds(s, size=taylor.size(s))
    powers = _first(tails <= target, above=0) or len(tails) - 1
    series, spent = _by_chebyshev(f, w, s, target, limit=powers)
    if series is not None:
        return series
    blocks: list[Tensor] = []
    _extend(blocks, taylor, f, w, powers)
    return Series(taylor, tuple(blocks), taylor.size(s), float(tails[powers]), spent + powers)


def _by_chebyshev(f: LinearVectorField, w: Tensor, s: float, target: float, *, limit: int) -> tuple[Series | None, int]:
    """The sum, or None where it would take more than ``limit`` terms, and the products spent."""
    chebyshev, reached = Chebyshev(), 0
    blocks: list[Tensor] = []
    size = chebyshev.size(s)
    p, q = chebyshev.bounds(s, size=size)
    k, growth = torch.arange(len(p)), torch.full_like(p, FIRST_GUESS)
    while True:
        degree = _first(growth * (p + q) <= target, above=reached)
        if degree is None or degree > limit:
            break
        reached = degree if reached else min(degree, FIRST_LOOK)
        _extend(blocks, chebyshev, f, w, reached)
        last, before = _sizes(blocks, f.norm)
        bound = float(p[reached]) * last + float(q[reached]) * before
        if bound <= target:
            return Series(chebyshev, tuple(blocks), size, bound, reached), reached
        largest = max(last, before, 1.0)
        if largest > LARGEST_GROWTH:
            break
        growth = largest ** (k / reached)
    return None, reached


def expected(
    f: LinearVectorField, span: float, *, rtol: float, rate: float | None = None, steep: float = STEEP
) -> tuple[Expansion, int, int]:
    r"""The expansion, its degree K and the number of coefficients to compute that serve without a look at the vectors.

    The rate is taken to be the fastest unless it is given, the slope to be ``steep`` times the size of the state. The
    Chebyshev vectors are taken to grow to twice their size at most; where B is not mutual powers of B are used instead,
    which never grow.
    """
    s = (f.fastest if rate is None else rate) * span
    target = max(rtol / (max(steep, 1e-30) * span), torch.finfo(torch.float64).eps)
    expansion: Expansion = Chebyshev() if f.mutual else Taylor()
    size = expansion.size(s)
    p, q = expansion.bounds(s, size=size)
    degree = _first((FIRST_GUESS if f.mutual else 1.0) * (p + q) <= target, above=0)
    return expansion, len(p) - 1 if degree is None else degree, size


def summands(f: LinearVectorField, w: Tensor, expansion: Expansion, degree: int) -> tuple[Tensor, ...]:
    """The vectors w_0 = w to w_K, in blocks, without a graph."""
    blocks: list[Tensor] = []
    _extend(blocks, expansion, f, w, degree)
    return tuple(blocks)


def mean_norm(x: Tensor, p: float) -> Tensor:
    """The p-norm as a mean over the values: their largest, their mean size, or its like in between."""
    norm: Tensor = torch.linalg.vector_norm(x, p)
    return norm if math.isinf(p) else norm / x.numel() ** (1.0 / p)


def _first(good: Tensor, *, above: int) -> int | None:
    """The first place beyond ``above`` that is true, or None."""
    places = good[above + 1 :].nonzero()
    return above + 1 + int(places[0]) if len(places) else None


def _extend(blocks: list[Tensor], expansion: Expansion, f: LinearVectorField, w: Tensor, degree: int) -> None:
    """Add the block of vectors from where they end to w_degree, of the one field."""
    extend(blocks, w.detach()[None], f.a.detach()[None], f.pattern, expansion.factor, degree=degree)


def _sizes(blocks: list[Tensor], p: float) -> tuple[float, float]:
    """The sizes of the last two vectors, in units of the first's. Waits for the device."""
    *_, before, last = (term for block in blocks[-2:] for term in block)
    sizes = torch.stack([torch.linalg.vector_norm(x, p) for x in (blocks[0][0], before, last)]).tolist()
    if not math.isfinite(sizes[-1]):
        raise SolverError("Exponential met a vector that is not finite: check the weights of the field.")
    return (sizes[2] / sizes[0], sizes[1] / sizes[0]) if sizes[0] > 0.0 else (0.0, 0.0)
