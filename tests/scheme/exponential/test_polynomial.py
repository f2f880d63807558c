"""Expansions of phi_1 agree with the function and with Bessel functions, and truncated sums keep their bounds."""

import math

import pytest
import torch
from scipy.integrate import quad
from scipy.special import ive
from torch import Tensor
from torch.autograd import gradcheck

from beltrami.scheme.exponential.polynomial import MAX_CACHED, Chebyshev, Expansion, Taylor, cached_on_device

expansions = pytest.mark.parametrize("expansion", [Chebyshev(), Taylor()], ids=["chebyshev", "taylor"])
times = pytest.mark.parametrize("s", [0.0, 1e-9, 2.0, 150.0])
CPU = torch.device("cpu")


def phi_1(x: float) -> float:
    return math.expm1(x) / x if x else 1.0


def polynomial(expansion: Expansion, k: int, x: float) -> float:
    return math.cos(k * math.acos(x)) if isinstance(expansion, Chebyshev) else x**k


@expansions
@times
def test_the_sum_is_phi_1_on_the_whole_interval(expansion: Expansion, s: float) -> None:
    size = expansion.size(s)
    (d,) = expansion.coefficients(torch.tensor([s], dtype=torch.float64), size=size).tolist()
    for x in (-1.0, -0.7, 0.0, 0.4, 0.99, 1.0):
        found = math.fsum(d[k] * polynomial(expansion, k, x) for k in range(size))
        assert found == pytest.approx(phi_1(s * (x - 1)), abs=1e-15 * (20 + s))  # round-off in the exponents


@expansions
@times
def test_coefficients_are_positive_and_sum_to_one(expansion: Expansion, s: float) -> None:
    """At x = 1 every polynomial is one, and so is phi_1(0)."""
    d = expansion.coefficients(torch.tensor([s], dtype=torch.float64), size=expansion.size(s))
    assert float(d.min()) > -1e-15
    assert float(d.sum()) == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize("s", [0.3, 2.0, 18.0])
def test_chebyshev_coefficients_are_integrals_of_bessel_functions(s: float) -> None:
    (d,) = Chebyshev().coefficients(torch.tensor([s], dtype=torch.float64), size=Chebyshev().size(s))
    for k in (0, 1, 2, 5, 11):
        integral = quad(lambda sigma, k=k: (2 - (k == 0)) * ive(k, sigma), 0, s, epsabs=1e-14)[0]
        assert s * float(d[k]) == pytest.approx(integral, abs=1e-13)


@expansions
def test_coefficients_at_several_times_equal_those_at_each(expansion: Expansion) -> None:
    s = torch.tensor([0.0, 0.5, 7.0], dtype=torch.float64)
    together = expansion.coefficients(s, size=40)
    alone = [expansion.coefficients(s[j : j + 1], size=40)[0] for j in range(3)]
    torch.testing.assert_close(together, torch.stack(alone), atol=1e-16, rtol=1e-14)


@expansions
def test_coefficients_are_differentiable_even_near_zero(expansion: Expansion) -> None:
    s = torch.tensor([1e-5, 0.02, 0.7, 9.0], dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda s: expansion.coefficients(s, size=30), s)
    (slope,) = torch.autograd.grad(expansion.coefficients(s.detach() * 0 + 0 * s, size=30).sum(), s)
    assert bool(torch.isfinite(slope).all())


@expansions
@times
def test_bounds_fall_with_the_degree_and_rise_with_time(expansion: Expansion, s: float) -> None:
    p, q = expansion.bounds(s, size=expansion.size(s))
    total = (p + q)[1:]
    assert bool((total.diff() <= 1e-15 * (1 + s)).all())
    assert float(total[-1]) <= 1e-12
    longer_p, longer_q = expansion.bounds(1.5 * s, size=expansion.size(s))
    assert bool((longer_p + longer_q + 1e-15 >= p + q)[1:].all())


def matrices() -> dict[str, tuple[Tensor, float]]:
    """Return matrices that do not expand in a p-norm, with p."""
    generator = torch.Generator().manual_seed(0)
    w = torch.rand(12, 12, generator=generator, dtype=torch.float64) ** 4
    rows, columns = w.sum(1, keepdim=True), w.sum(0, keepdim=True)
    symmetric = w + w.T
    root = symmetric.sum(1).rsqrt()
    star = torch.zeros(12, 12, dtype=torch.float64)
    star[0, 1:], star[1:, 0] = 1 / 11, 1.0
    return {
        "rows": (w / rows, math.inf),
        "columns": (w / columns, 1.0),
        "both": (w / (rows * columns).sqrt(), 2.0),
        "symmetric": (root[:, None] * symmetric * root, 2.0),
        "hub": (star, math.inf),
        "identity": (torch.eye(12, dtype=torch.float64), math.inf),
        "shift": (torch.eye(12, dtype=torch.float64).roll(1, 0), 2.0),
    }


@expansions
@pytest.mark.parametrize("name", matrices())
@pytest.mark.parametrize("s", [0.5, 18.0])
def test_error_of_a_truncated_sum_is_within_its_bound(expansion: Expansion, name: str, s: float) -> None:
    b, p = matrices()[name]
    w = torch.randn(12, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    augmented = torch.zeros(15, 15, dtype=torch.float64)
    augmented[:12, :12], augmented[:12, 12:] = s * (b - torch.eye(12)), w
    exact = torch.linalg.matrix_exp(augmented)[:12, 12:]
    size = expansion.size(s)
    (d,) = expansion.coefficients(torch.tensor([s], dtype=torch.float64), size=size)
    last, before = expansion.bounds(s, size=size)
    terms = [w]
    for k in range(size - 2):
        c = expansion.factor if k else 1.0
        terms.append(c * b @ terms[k] - (c - 1.0) * terms[max(k - 1, 0)])
    sizes = [float(torch.linalg.vector_norm(term, p)) for term in terms]
    total, tightest = torch.zeros_like(w), math.inf
    for k, term in enumerate(terms):
        total = total + d[k] * term
        if k:
            error = float(torch.linalg.vector_norm(total - exact, p))
            bound = float(last[k]) * sizes[k] + float(before[k]) * sizes[k - 1]
            assert error <= bound + 1e-14 * max(sizes)  # round-off relative to the largest vector
            tightest = min(tightest, bound / error) if error > 1e-9 else tightest
    assert tightest < 20, "the bound is too loose and would cost terms"


def test_a_cached_tensor_is_built_once_for_its_arguments() -> None:
    made = []

    @cached_on_device
    def powers(device: torch.device, base: float, count: int) -> Tensor:
        made.append((base, count))
        return base ** torch.arange(count, device=device)

    first = powers(CPU, 2.0, 3)
    assert first.tolist() == [1.0, 2.0, 4.0]
    assert powers(CPU, 2.0, 3) is first
    assert powers(CPU, 2.0, 2).tolist() == [1.0, 2.0]
    assert made == [(2.0, 3), (2.0, 2)]


def test_the_cache_drops_the_oldest_tensor_when_full() -> None:
    made = []

    @cached_on_device
    def one(device: torch.device, value: int) -> Tensor:
        made.append(value)
        return torch.tensor(value, device=device)

    for value in range(MAX_CACHED + 1):
        one(CPU, value)
    one(CPU, MAX_CACHED)
    one(CPU, 0)
    assert made == [*range(MAX_CACHED + 1), 0]


def test_a_tensor_cached_in_inference_mode_can_be_used_in_training() -> None:
    @cached_on_device
    def three(device: torch.device) -> Tensor:
        return torch.full((), 3.0, device=device)

    with torch.inference_mode():
        three(CPU)
    x = torch.ones((), requires_grad=True)
    (x * three(CPU)).backward()
    assert x.grad is not None
    assert float(x.grad) == 3.0
