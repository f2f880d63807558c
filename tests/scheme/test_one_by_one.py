"""Sums field by field are the matrix exponential's, and so are their derivatives."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from beltrami.scheme import Pattern
from beltrami.scheme.expansion import Chebyshev, Expansion, Taylor
from beltrami.scheme.one_by_one import OneByOne

RUNS, NODES, WIDTH = 3, 4, 2
DRAW = torch.Generator().manual_seed(0)


@dataclass(frozen=True)
class Full(Pattern):
    """Matrices with all their entries, row by row."""

    def product(self, a: Tensor, y: Tensor) -> Tensor:
        raise NotImplementedError

    def transposed(self, a: Tensor, y: Tensor) -> Tensor:
        raise NotImplementedError

    def outer(self, p: Tensor, q: Tensor, *, shared: bool) -> Tensor:
        raise NotImplementedError

    def add_product(self, out: Tensor, a: Tensor, y: Tensor, *, factor: float) -> None:
        out.add_(a.view(NODES, NODES) @ y, alpha=factor)

    def add_gradients(self, out: Tensor, da: Tensor, a: Tensor, p: Tensor, q: Tensor, *, factor: float) -> None:
        out.add_(a.view(NODES, NODES).T @ p, alpha=factor)
        da.add_((p @ q.T).flatten(), alpha=factor)


def drawn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=DRAW, dtype=torch.float64)


def symmetric() -> Tensor:
    """Matrices that do not expand, (runs, n n)."""
    b = drawn(RUNS, NODES, NODES)
    b = b + b.mT
    scaled: Tensor = b / torch.linalg.matrix_norm(b, 2)[:, None, None]
    return scaled.flatten(1)


@pytest.mark.parametrize("expansion", [Chebyshev(), Taylor()], ids=["Chebyshev", "Taylor"])
def test_states_are_those_of_the_matrix_exponential(expansion: Expansion) -> None:
    a, y0 = symmetric(), drawn(RUNS, NODES, WIDTH)
    m = a.view(RUNS, NODES, NODES) - torch.eye(NODES, dtype=torch.float64)
    ts = torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64)
    d = (ts[:, None] * expansion.coefficients(ts, size=60)).expand(RUNS, -1, -1)
    ys = OneByOne.apply(y0, a, m @ y0, d, Full(), expansion)  # type: ignore[no-untyped-call]
    for j, t in enumerate([0.0, *ts.tolist()]):
        torch.testing.assert_close(ys[:, j], torch.linalg.matrix_exp(t * m) @ y0)


@pytest.mark.parametrize("expansion", [Chebyshev(), Taylor()], ids=["Chebyshev", "Taylor"])
@pytest.mark.parametrize("terms", [1, 2, 5])
def test_derivatives_are_those_of_the_sum(expansion: Expansion, terms: int) -> None:
    inputs = [symmetric(), drawn(RUNS, NODES, WIDTH), drawn(RUNS, NODES, WIDTH), drawn(RUNS, 2, terms)]
    a, y0, w, d = (x.requires_grad_() for x in inputs)

    def sums(*x: Tensor) -> Tensor:
        out: Tensor = OneByOne.apply(*x, Full(), expansion)  # type: ignore[no-untyped-call]
        return out

    assert torch.autograd.gradcheck(sums, (y0, a, w, d))


def test_nothing_is_kept_where_nobody_differentiates() -> None:
    a, y0, d = symmetric(), drawn(RUNS, NODES, WIDTH), drawn(RUNS, 1, 4)
    plain = OneByOne.apply(y0, a, y0, d, Full(), Chebyshev())  # type: ignore[no-untyped-call]
    recorded = OneByOne.apply(y0.clone().requires_grad_(), a, y0, d, Full(), Chebyshev())  # type: ignore[no-untyped-call]
    assert plain.grad_fn is None
    torch.testing.assert_close(plain, recorded.detach(), rtol=0, atol=0)
