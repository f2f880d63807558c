"""Values and gradients of Exponential agree with the matrix exponential, on dense matrices."""

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from checks import Full
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import vmap

from beltrami.errors import SolverError
from beltrami.scheme import (
    PID,
    RK4,
    ConstantSteps,
    Dopri5,
    Exponential,
    LinearVectorField,
    Scheme,
    SparsityPattern,
    solve,
)
from beltrami.scheme.base import warmup
from beltrami.scheme.exponential.integrator import expand
from beltrami.scheme.exponential.polynomial import Chebyshev, Taylor
from beltrami.scheme.norm import WholeNorm

TIGHT = Exponential(rtol=0.0, atol=1e-12)
N, D = 9, 2


class Dense(LinearVectorField):
    """alpha (B - I) y + b with a dense matrix B."""

    def __init__(self, b: Tensor, *, alpha: Tensor | None = None, source: Tensor | None = None, norm: float) -> None:
        self.a, self.alpha, self.source, self.norm = b, alpha, source, norm

    @property
    def pattern(self) -> SparsityPattern:
        return Full()

    def __call__(self, t: float, y: Tensor) -> Tensor:
        dy = (1.0 if self.alpha is None else self.alpha) * (self.a @ y - y)
        return dy if self.source is None else dy + self.source


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def weights(norm: float, *, seed: int = 0) -> Tensor:
    """Return positive weights, normalised over rows, columns or both."""
    w = normal(N, N, seed=seed).exp() ** 2
    rows, columns = w.sum(1, keepdim=True), w.sum(0, keepdim=True)
    return w / {math.inf: rows, 1.0: columns, 2.0: (rows * columns).sqrt()}[norm]


def ring(*, directed: bool, nodes: int = N) -> Tensor:
    """Return a ring; the eigenvalues of the directed one lie on the unit circle."""
    shift = torch.eye(nodes, dtype=torch.float64).roll(1, 0)
    return shift if directed else (shift + shift.T) / 2


def exact(field: Dense, y0: Tensor, t: float) -> Tensor:
    """Return e^(tM) y0 + t phi_1(tM) b as the exponential of M augmented by b."""
    alpha = torch.ones((), dtype=torch.float64) if field.alpha is None else field.alpha
    m = alpha * (field.a - torch.eye(N, dtype=torch.float64))
    source = torch.zeros_like(y0) if field.source is None else field.source
    augmented = torch.cat((torch.cat((m, source), 1), m.new_zeros(D, N + D)))
    power: Tensor = torch.linalg.matrix_exp(t * augmented)
    return power[:N, :N] @ y0 + power[:N, N:]


norms = pytest.mark.parametrize("norm", [math.inf, 1.0, 2.0], ids=["rows", "columns", "both"])
rings = pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])


@norms
@pytest.mark.parametrize("t", [1e-12, 3.0, 80.0])
def test_the_solution_is_the_matrix_exponential(norm: float, t: float) -> None:
    alpha, source, y0 = torch.tensor(0.7, dtype=torch.float64), 0.3 * normal(N, D, seed=2), normal(N, D, seed=1)
    for field in (
        Dense(weights(norm), norm=norm),
        Dense(weights(norm), alpha=alpha, norm=norm),
        Dense(weights(norm), alpha=alpha, source=source, norm=norm),
    ):
        ys = solve(field, y0, (0.0, t), TIGHT).ys
        assert torch.equal(ys[0], y0)
        torch.testing.assert_close(ys[1], exact(field, y0, t), atol=1e-10, rtol=0)


@rings
def test_the_solution_is_exact_for_real_and_complex_spectra(directed: bool) -> None:
    field, y0 = Dense(ring(directed=directed), source=normal(N, D), norm=2.0), normal(N, D, seed=1)
    for t in (0.5, 5.0, 40.0):
        torch.testing.assert_close(solve(field, y0, (0.0, t), TIGHT).ys[1], exact(field, y0, t), atol=1e-10, rtol=0)


@norms
@pytest.mark.parametrize("s", [0.2, 18.0])
@pytest.mark.parametrize("target", [1e-2, 1e-12])
def test_the_error_is_below_the_bound_and_the_bound_below_the_target(norm: float, s: float, target: float) -> None:
    w = normal(N, D, seed=3)
    for b in (weights(norm), weights(norm, seed=5), ring(directed=False), ring(directed=True), torch.eye(N).double()):
        field = Dense(b, norm=norm)
        series = expand(field, w, s, target=target)
        d = series.expansion.coefficients(torch.tensor([s], dtype=torch.float64), size=series.size)[0]
        found = torch.tensordot(d[: series.degree + 1], torch.cat(series.blocks)[:, 0], 1)
        slope = Dense(b, source=w, norm=norm)
        error = WholeNorm().mean(found - exact(slope, torch.zeros_like(w), s) / s, norm) / WholeNorm().mean(w, norm)
        assert float(error) <= series.bound + 1e-14
        assert series.bound <= target


@rings
def test_powers_are_used_if_the_spectrum_is_far_from_real(directed: bool) -> None:
    series = expand(Dense(ring(directed=directed), norm=2.0), normal(N, D), 18.0, target=1e-6)
    assert isinstance(series.expansion, Taylor if directed else Chebyshev)
    assert series.products == series.degree + (8 if directed else 0)  # the trial of Chebyshev polynomials counts


@pytest.mark.parametrize(("rtol", "most"), [(1e-3, 18), (1e-6, 26)])
def test_a_time_of_eighteen_needs_about_twenty_products(rtol: float, most: int) -> None:
    y0 = normal(N, D, seed=1)
    stats = solve(Dense(ring(directed=False), norm=2.0), y0, (0.0, 18.0), Exponential(rtol, 0.0)).stats
    assert stats.evaluations <= most
    assert (stats.accepted, stats.rejected, stats.last_dt) == (1, 0, 18.0)


def test_looser_tolerances_need_fewer_products_and_give_larger_errors() -> None:
    field, y0 = Dense(weights(2.0), norm=2.0), normal(N, D, seed=1)
    solutions = [solve(field, y0, (0.0, 6.0), Exponential(0.0, 10.0**-p)) for p in (1, 3, 5, 7, 9)]
    products = [solution.stats.evaluations for solution in solutions]
    errors = [float(WholeNorm().mean(s.ys[1] - exact(field, y0, 6.0), 2.0)) for s in solutions]
    assert products == sorted(products)
    assert all(later < earlier for earlier, later in pairwise(errors))
    assert all(error <= 10.0**-p for error, p in zip(errors, (1, 3, 5, 7, 9), strict=True))


def test_the_relative_tolerance_is_that_of_the_initial_state() -> None:
    field, y0 = Dense(weights(2.0), norm=2.0), normal(N, D, seed=1)
    small, large = (solve(field, size * y0, (0.0, 6.0), Exponential(1e-5, 0.0)) for size in (1e-8, 1e8))
    assert small.stats.evaluations == large.stats.evaluations
    torch.testing.assert_close(small.ys * 1e8, large.ys * 1e-8)


@rings
def test_states_at_inner_times_equal_those_of_single_solves(directed: bool) -> None:
    field, y0 = Dense(ring(directed=directed), source=normal(N, D), norm=2.0), normal(N, D, seed=1)
    ts = (0.0, 0.3, 1.0, 2.5, 7.0, 18.0)
    along = solve(field, y0, ts, TIGHT)
    last = solve(field, y0, (0.0, 18.0), TIGHT)
    assert along.ys.shape == (6, N, D)
    assert along.stats.evaluations == last.stats.evaluations
    for k in range(1, 6):
        torch.testing.assert_close(along.ys[k], solve(field, y0, (0.0, ts[k]), TIGHT).ys[1], atol=1e-11, rtol=0)


def test_only_time_differences_matter() -> None:
    field, y0 = Dense(weights(2.0), norm=2.0), normal(N, D, seed=1)
    torch.testing.assert_close(solve(field, y0, (5.0, 6.5), TIGHT).ys, solve(field, y0, (0.0, 1.5), TIGHT).ys)


def test_a_stationary_state_needs_hardly_any_products() -> None:
    field, y0 = Dense(weights(math.inf), norm=math.inf), torch.ones(N, D, dtype=torch.float64)
    solution = solve(field, y0, (0.0, 18.0), Exponential(1e-6, 0.0))
    torch.testing.assert_close(solution.ys[1], y0)
    assert solution.stats.evaluations <= 3
    still = Dense(torch.eye(N).double(), norm=math.inf)
    assert torch.equal(solve(still, normal(N, D), (0.0, 18.0), Exponential(1e-6, 0.0)).ys[1], normal(N, D))


@pytest.mark.parametrize("rate", [0.0, 1e-300, 1e-9])
def test_a_tiny_rate_leaves_only_the_source(rate: float) -> None:
    alpha = torch.tensor(rate, dtype=torch.float64, requires_grad=True)
    field = Dense(weights(2.0), alpha=alpha, source=normal(N, D), norm=2.0)
    y0 = normal(N, D, seed=1)
    end = solve(field, y0, (0.0, 3.0), TIGHT).ys[1]
    torch.testing.assert_close(end, y0 + 3.0 * normal(N, D), atol=1e-7, rtol=0)
    (slope,) = torch.autograd.grad(end.sum(), alpha)
    (wanted,) = torch.autograd.grad(exact(field, y0, 3.0).sum(), alpha)
    torch.testing.assert_close(slope, wanted, atol=1e-6, rtol=0)


def test_single_precision_is_accurate_to_round_off() -> None:
    field = Dense(ring(directed=False).float(), source=0.1 * normal(N, D).float(), norm=2.0)
    y0 = normal(N, D, seed=1).float()
    end = solve(field, y0, (0.0, 18.0), Exponential(1e-6, 1e-7)).ys[1]
    double = Dense(ring(directed=False), source=0.1 * normal(N, D).float().double(), norm=2.0)
    assert end.dtype == torch.float32
    torch.testing.assert_close(end.double(), exact(double, y0.double(), 18.0), atol=1e-5, rtol=0)


def learned(b: Tensor) -> tuple[Tensor, ...]:
    alpha, n = torch.tensor(0.6, dtype=torch.float64), len(b)
    return tuple(x.clone().requires_grad_() for x in (b, alpha, normal(n, D, seed=2), normal(n, D, seed=1)))


@pytest.mark.slow
@rings
@pytest.mark.parametrize("tolerance", [1e-1, 1e-8])
def test_the_gradient_is_exact_for_the_sum_at_any_tolerance(directed: bool, tolerance: float) -> None:
    """Also for a sum of few terms, whose derivative is not that of the exponential."""

    def ends(b: Tensor, alpha: Tensor, source: Tensor, y0: Tensor) -> Tensor:
        field = Dense(b, alpha=alpha, source=source, norm=2.0)
        return solve(field, y0, (0.0, 0.7, 4.0), Exponential(0.0, tolerance)).ys

    assert gradcheck(ends, learned(ring(directed=directed, nodes=4)))


@rings
def test_the_gradient_is_that_of_the_matrix_exponential(directed: bool) -> None:
    b, alpha, source, y0 = inputs = learned(ring(directed=directed))
    field = Dense(b, alpha=alpha, source=source, norm=2.0)
    _, middle, end = solve(field, y0, (0.0, 2.0, 9.0), TIGHT).ys
    found = torch.autograd.grad(middle.sin().sum() + end.square().sum(), inputs)
    middle, end = exact(field, y0, 2.0), exact(field, y0, 9.0)
    wanted = torch.autograd.grad(middle.sin().sum() + end.square().sum(), inputs)
    for f, w in zip(found, wanted, strict=True):
        torch.testing.assert_close(f, w, atol=1e-9, rtol=1e-9)


def test_each_gradient_is_the_same_when_computed_alone() -> None:
    b, alpha, source, y0 = learned(ring(directed=False))
    whole = solve(Dense(b, alpha=alpha, source=source, norm=2.0), y0, (0.0, 4.0), TIGHT).ys[1].square().sum()
    wanted = torch.autograd.grad(whole, (b, alpha, source, y0))
    for k in range(4):
        parts = [x if i == k else x.detach() for i, x in enumerate((b, alpha, source, y0))]
        field = Dense(parts[0], alpha=parts[1], source=parts[2], norm=2.0)
        loss = solve(field, parts[3], (0.0, 4.0), TIGHT).ys[1].square().sum()
        torch.testing.assert_close(torch.autograd.grad(loss, parts[k])[0], wanted[k])


def test_the_backward_pass_costs_one_transposed_product_a_term() -> None:
    b, alpha, source, y0 = learned(ring(directed=False))
    solution = solve(Dense(b, alpha=alpha, source=source, norm=2.0), y0, (0.0, 18.0), Exponential(1e-4, 0.0))
    assert solution.stats.backward_evaluations == 0
    solution.ys[1].sum().backward()
    assert solution.stats.backward_evaluations == solution.stats.evaluations - 1


def test_stepping_the_same_field_ends_at_the_same_state() -> None:
    field, y0 = Dense(weights(2.0), source=normal(N, D), norm=2.0), normal(N, D, seed=1)
    stepped = solve(field, y0, (0.0, 5.0), Scheme(Dopri5(), PID(1e-11, 1e-11))).ys[1]
    torch.testing.assert_close(solve(field, y0, (0.0, 5.0), TIGHT).ys[1], stepped, atol=1e-9, rtol=0)


def test_it_needs_fewer_products_than_rk4_of_the_same_accuracy() -> None:
    field, y0 = Dense(ring(directed=False), norm=2.0), normal(N, D, seed=1)
    solutions = [solve(field, y0, (0.0, 18.0), s) for s in (Exponential(1e-4, 0.0), Scheme(RK4(), ConstantSteps(1.5)))]
    errors = [float((solution.ys[1] - exact(field, y0, 18.0)).abs().max()) for solution in solutions]
    assert errors[0] < errors[1]
    assert 2 * solutions[0].stats.evaluations < solutions[1].stats.evaluations


def test_resume_changes_nothing() -> None:
    stats = solve(Dense(weights(2.0), norm=2.0), normal(N, D), (0.0, 1.0), TIGHT).stats
    assert TIGHT.resume(stats) == TIGHT


def test_a_field_that_is_not_linear_is_refused() -> None:
    class Nonlinear:
        def __call__(self, t: float, y: Tensor) -> Tensor:
            return y.sin()

    with pytest.raises(ValueError, match=r"^Exponential solves linear fields only, and Nonlinear is not one: freeze"):
        solve(Nonlinear(), normal(N, D), (0.0, 1.0), TIGHT)


def test_a_second_derivative_is_refused() -> None:
    b, alpha, source, y0 = learned(ring(directed=False))
    end = solve(Dense(b, alpha=alpha, source=source, norm=2.0), y0, (0.0, 1.0), TIGHT).ys[1]
    with pytest.raises(RuntimeError, match=r"Exponential\(\) has no second derivative"):
        torch.autograd.grad(end.sum(), y0, create_graph=True)


@pytest.mark.parametrize("rate", [-0.1, math.nan, math.inf])
def test_a_negative_or_infinite_rate_is_refused(rate: float) -> None:
    field = Dense(weights(2.0), alpha=torch.tensor(rate).double(), source=normal(N, D), norm=2.0)
    with pytest.raises(SolverError, match="met a rate of"):
        solve(field, normal(N, D), (0.0, 1.0), TIGHT)


def test_entries_that_are_not_finite_are_refused() -> None:
    b = ring(directed=False)
    b[2, 3] = math.nan
    with pytest.raises(SolverError, match="a slope of size nan"):
        solve(Dense(b, norm=2.0), normal(N, D), (0.0, 1.0), TIGHT)


@pytest.mark.parametrize(("rtol", "atol"), [(-1.0, 1.0), (1.0, -1.0), (0.0, 0.0), (math.nan, 1.0)])
def test_meaningless_tolerances_are_refused(rtol: float, atol: float) -> None:
    with pytest.raises(ValueError, match="Exponential needs non-negative, finite `rtol` and `atol`"):
        Exponential(rtol, atol)


@pytest.mark.parametrize("time", [1e9, 1e300])
def test_a_time_that_needs_too_many_terms_is_refused_before_the_first_product(time: float) -> None:
    products = 0

    class Counted(Dense):
        def __call__(self, t: float, y: Tensor) -> Tensor:
            nonlocal products
            products += 1
            return super().__call__(t, y)

    for run in (solve, vmap(solve, in_dims=(None, 0, None, None)), in_warmup):
        with pytest.raises(ValueError, match=r"needs up to \S+ terms for a time of 1e.* at most 2000 are allowed"):
            run(Counted(ring(directed=False), norm=2.0), normal(N, D), (0.0, time), TIGHT)
    assert products == 0


def in_warmup(*arguments: Any) -> object:
    with warmup():
        return solve(*arguments)


def test_a_large_rate_counts_as_a_long_time() -> None:
    field = Dense(ring(directed=False), alpha=torch.tensor(1e9).double(), norm=2.0)
    with pytest.raises(ValueError, match="needs up to"):
        solve(field, normal(N, D), (0.0, 1.0), TIGHT)


def test_a_spectrum_far_from_real_may_need_too_many_powers() -> None:
    with pytest.raises(ValueError, match=r"needs up to \S+ terms"):
        solve(Dense(ring(directed=True), norm=2.0), normal(N, D), (0.0, 4e3), Exponential(1e-3, 1e-3))
    found = solve(Dense(ring(directed=False), norm=2.0), normal(N, D), (0.0, 4e3), Exponential(1e-3, 1e-3)).ys[-1]
    mean = normal(N, D).mean(0).expand(N, D)
    torch.testing.assert_close(found, mean, rtol=0, atol=2e-3)
