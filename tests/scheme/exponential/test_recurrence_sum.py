"""Sums for a batch of linear fields agree with the matrix exponential, and have the right derivatives."""

import pytest
import torch
from checks import Full
from torch import Tensor

from beltrami.scheme.exponential.polynomial import Chebyshev, Expansion, Taylor
from beltrami.scheme.exponential.recurrence_sum import recurrence_sum

RUNS, NODES, WIDTH = 3, 4, 2
DRAW = torch.Generator().manual_seed(0)


def drawn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=DRAW, dtype=torch.float64)


def symmetric() -> Tensor:
    """Return matrices that do not expand, (runs, n, n)."""
    b = drawn(RUNS, NODES, NODES)
    b = b + b.mT
    scaled: Tensor = b / torch.linalg.matrix_norm(b, 2)[:, None, None]
    return scaled


@pytest.mark.parametrize("expansion", [Chebyshev(), Taylor()], ids=["Chebyshev", "Taylor"])
def test_states_are_those_of_the_matrix_exponential(expansion: Expansion) -> None:
    a, y0 = symmetric(), drawn(RUNS, NODES, WIDTH)
    m = a - torch.eye(NODES, dtype=torch.float64)
    ts = torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64)
    d = (ts[:, None] * expansion.coefficients(ts, size=60)).expand(RUNS, -1, -1)
    ys = recurrence_sum(y0, a, m @ y0, d, pattern=Full(), c=expansion.factor)
    for j, t in enumerate([0.0, *ts.tolist()]):
        torch.testing.assert_close(ys[:, j], torch.linalg.matrix_exp(t * m) @ y0)


@pytest.mark.slow
@pytest.mark.parametrize("expansion", [Chebyshev(), Taylor()], ids=["Chebyshev", "Taylor"])
@pytest.mark.parametrize("terms", [1, 2, 5])
def test_derivatives_are_those_of_the_sum(expansion: Expansion, terms: int) -> None:
    inputs = [symmetric(), drawn(RUNS, NODES, WIDTH), drawn(RUNS, NODES, WIDTH), drawn(RUNS, 2, terms)]
    a, y0, w, d = (x.requires_grad_() for x in inputs)

    def sums(y0: Tensor, a: Tensor, w: Tensor, d: Tensor) -> Tensor:
        return recurrence_sum(y0, a, w, d, pattern=Full(), c=expansion.factor)

    assert torch.autograd.gradcheck(sums, (y0, a, w, d))


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("wanted", range(4))
def test_each_derivative_is_the_same_when_computed_alone(times: int, wanted: int) -> None:
    inputs = [drawn(RUNS, NODES, WIDTH), symmetric(), drawn(RUNS, NODES, WIDTH), drawn(RUNS, times, 4)]

    def derivatives(*needed: int) -> tuple[Tensor, ...]:
        x = [one.clone().requires_grad_(k in needed) for k, one in enumerate(inputs)]
        out = recurrence_sum(*x, pattern=Full(), c=2.0)
        return torch.autograd.grad(out.sin().sum(), [x[k] for k in needed])

    torch.testing.assert_close(derivatives(wanted)[0], derivatives(0, 1, 2, 3)[wanted], rtol=0, atol=0)
