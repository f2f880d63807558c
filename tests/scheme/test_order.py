"""Every solver converges at its stated order, at the end and between steps, for the stated number of evaluations."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from beltrami.scheme import (
    RK4,
    AdamsBashforth,
    AdamsMoulton,
    Bosh3,
    ConstantSteps,
    CrankNicolson,
    Dopri5,
    Euler,
    Heun,
    ImplicitEuler,
    Midpoint,
    Scheme,
    Solver,
    solve,
)
from beltrami.scheme.runge_kutta import Tableau

RUNGE_KUTTA = [Euler(), Midpoint(), Heun(), RK4(), Bosh3(), Dopri5()]
MULTISTEP = [*(AdamsBashforth(order=p) for p in range(1, 6)), *(AdamsMoulton(order=p) for p in range(2, 6))]
IMPLICIT = [ImplicitEuler(1e-12, 1e-12), CrankNicolson(1e-12, 1e-12)]
C = torch.tensor([1.0, 1.5, 3.0], dtype=torch.float64)


def field(t: float, y: Tensor) -> Tensor:
    return -2.0 * t * y**2


def exact(t: float) -> Tensor:
    """Return the solution of y' = -2 t y^2, y(0) = 1 / c."""
    return 1.0 / (C + t**2)


def errors(solver: Solver, steps: list[int], *, between: bool = False) -> list[float]:
    """Return the errors at t = 1, or the largest at times within steps."""
    ts = [0.0, 0.1234, 0.4321, 0.777, 0.91, 1.0] if between else [0.0, 1.0]
    truth = torch.stack([exact(t) for t in ts])
    found = [solve(field, exact(0.0), ts, Scheme(solver, ConstantSteps(1.0 / n))).ys for n in steps]
    return [float((ys - truth).abs().max()) for ys in found]


def slope(values: list[float], steps: list[int]) -> float:
    """Return the slope of log error against log step, by least squares."""
    x = torch.tensor([-math.log(n) for n in steps], dtype=torch.float64)
    y = torch.tensor([math.log(v) for v in values], dtype=torch.float64)
    return float(((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum())


@pytest.mark.slow
@pytest.mark.parametrize("solver", [*RUNGE_KUTTA, *MULTISTEP, *IMPLICIT], ids=repr)
def test_error_falls_at_the_stated_order(solver: Solver) -> None:
    steps = [64, 96, 128, 192] if solver in MULTISTEP else [16, 24, 32, 48]
    assert slope(errors(solver, steps), steps) == pytest.approx(solver.order, abs=0.3)


@pytest.mark.parametrize("solver", [*RUNGE_KUTTA, AdamsBashforth(order=4), AdamsMoulton(order=4), *IMPLICIT], ids=repr)
def test_error_between_steps_falls_at_the_order_of_the_solver_up_to_four(solver: Solver) -> None:
    steps = [8, 12, 16, 24] if solver in IMPLICIT else [16, 24, 32, 48, 64, 96]
    assert slope(errors(solver, steps, between=True), steps) > min(solver.order, 4) - 0.4


def test_continuous_extension_of_dopri5_is_one_order_better_than_a_cubic() -> None:
    y0, ends = exact(0.3), [2.0**-k for k in range(1, 6)]
    local = []
    for h in ends:
        solver = Dopri5()
        step = solver.step(field, 0.3, 0.3 + h, y0, solver.init(field, 0.3, y0))
        local.append(float((step.interpolate(0.3 + 0.4 * h) - exact(0.3 + 0.4 * h)).abs().max()))
    assert slope(local, [2**k for k in range(1, 6)]) == pytest.approx(5.0, abs=0.4)


@pytest.mark.parametrize("solver", [*RUNGE_KUTTA, AdamsBashforth(), AdamsMoulton(), *IMPLICIT], ids=repr)
def test_interpolant_meets_both_ends(solver: Solver) -> None:
    y0 = exact(0.2)
    step = solver.step(field, 0.2, 0.3, y0, solver.init(field, 0.2, y0))
    torch.testing.assert_close(step.interpolate(0.2), y0)
    torch.testing.assert_close(step.interpolate(0.3), step.y1)


@pytest.mark.parametrize(
    ("solver", "order", "finest"),
    [(Heun(), 2, 128), (Bosh3(), 3, 64), (Dopri5(), 5, 32), (IMPLICIT[0], 2, 256), (IMPLICIT[1], 2, 256)],
    ids=repr,
)
def test_error_estimate_is_of_the_stated_order(solver: Solver, order: int, finest: int) -> None:
    sizes, found = [finest // 8, finest // 4, finest // 2, finest], []
    for n in sizes:
        y0 = exact(0.2)
        step = solver.step(field, 0.2, 0.2 + 1.0 / n, y0, solver.init(field, 0.2, y0))
        assert step.error is not None
        found.append(float(step.error().abs().max()))
    assert solver.error_order == order - 1
    assert slope(found, sizes) == pytest.approx(order, abs=0.3)


@pytest.mark.parametrize(
    ("solver", "evaluations"),
    [
        (Euler(), 10),
        (Midpoint(), 20),
        (Heun(), 20),
        (RK4(), 40),
        (Bosh3(), 31),
        (Dopri5(), 61),
        (AdamsBashforth(order=1), 10),
        (AdamsBashforth(order=4), 10 + 3 * 4),
        (AdamsMoulton(order=4), 2 * 8 + 2 * 5),
    ],
    ids=repr,
)
def test_ten_steps_cost_the_stated_evaluations(solver: Solver, evaluations: int) -> None:
    stats = solve(field, exact(0.0), [0.0, 1.0], Scheme(solver, ConstantSteps(0.1))).stats
    assert (stats.accepted, stats.rejected, stats.evaluations) == (10, 0, evaluations)


def test_the_slope_at_the_end_of_a_step_is_evaluated_only_for_interpolation() -> None:
    stats = solve(field, exact(0.0), [0.0, 0.51, 0.53, 0.6, 1.0], Scheme(RK4(), ConstantSteps(0.1))).stats
    assert 40 + 1 <= stats.evaluations <= 40 + 2  # 0.6 is the end of a step, up to round-off


@pytest.mark.parametrize("method", [solver.tableau for solver in RUNGE_KUTTA], ids=map(repr, RUNGE_KUTTA))
def test_tableau_fulfils_the_order_conditions(method: Tableau) -> None:
    s = len(method.b)
    a = torch.zeros(s, s, dtype=torch.float64)
    for i, row in enumerate(method.a, start=1):
        a[i, : len(row)] = torch.tensor(row, dtype=torch.float64)
    b, c = torch.tensor(method.b, dtype=torch.float64), a.sum(1)
    embedded = b - torch.tensor(method.error or [0.0] * s, dtype=torch.float64)
    torch.testing.assert_close(c[1:], torch.tensor(method.c, dtype=torch.float64))
    for weights, order in [(b, method.order), (embedded, method.error_order or method.order)]:
        conditions = [(weights.sum(), 1.0), (weights @ c, 1 / 2), (weights @ c**2, 1 / 3), (weights @ a @ c, 1 / 6)]
        conditions += [(weights @ c**3, 1 / 4), ((weights * c) @ a @ c, 1 / 8), (weights @ a @ c**2, 1 / 12)]
        conditions += [(weights @ a @ a @ c, 1 / 24), (weights @ c**4, 1 / 5), ((weights * c**2) @ a @ c, 1 / 10)]
        counts = {1: 1, 2: 2, 3: 4, 4: 8, 5: 10}
        for found, wanted in itertools.islice(conditions, counts[order]):
            assert float(found) == pytest.approx(wanted, abs=1e-14)


def test_solvers_are_printed_with_their_arguments() -> None:
    assert repr(Dopri5()) == "Dopri5()"
    assert repr(AdamsMoulton(order=3)) == "AdamsMoulton(order=3)"


@pytest.mark.parametrize("order", [0, 6])
def test_adams_bashforth_of_unknown_order_is_refused(order: int) -> None:
    with pytest.raises(ValueError, match=rf"`order` 1 to 5; got {order}"):
        AdamsBashforth(order=order)


@pytest.mark.parametrize("order", [1, 6])
def test_adams_moulton_of_unknown_order_is_refused(order: int) -> None:
    with pytest.raises(ValueError, match=rf"`order` 2 to 5; got {order}"):
        AdamsMoulton(order=order)
