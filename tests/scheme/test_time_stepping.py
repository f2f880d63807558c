"""``solve`` agrees with mathematics and scipy, and refuses bad arguments."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from torch import Tensor

from beltrami.errors import SolverError
from beltrami.scheme import (
    PID,
    RK4,
    AdamsBashforth,
    AdamsMoulton,
    Adjoint,
    Bosh3,
    Checkpointed,
    ConstantSteps,
    Continuous,
    Controller,
    Direct,
    Dopri5,
    Euler,
    Scheme,
    Solver,
    solve,
    step_loop,
)

RK4_STEPS = Scheme(RK4(), ConstantSteps(0.1))
DOPRI5 = Scheme(Dopri5(), PID(1e-6, 1e-8))
ONE = torch.ones(2, dtype=torch.float64)


def decay(t: float, y: Tensor) -> Tensor:
    return -y


@pytest.mark.parametrize(
    ("solver", "controller"),
    [
        (RK4(), ConstantSteps(0.02)),
        (Bosh3(), PID(1e-8, 1e-8)),
        (Dopri5(), PID(1e-9, 1e-9)),
        (AdamsBashforth(order=5), ConstantSteps(0.01)),
        (AdamsMoulton(order=5), ConstantSteps(0.02)),
    ],
    ids=repr,
)
def test_linear_problem_is_solved_by_the_matrix_exponential(solver: Solver, controller: Controller) -> None:
    g = torch.Generator().manual_seed(0)
    a, y0 = torch.randn(5, 5, generator=g, dtype=torch.float64), torch.randn(5, 3, generator=g, dtype=torch.float64)
    ts = [0.5, 0.77, 1.3, 2.0]
    ys = solve(lambda t, y: a @ y, y0, ts, Scheme(solver, controller)).ys
    truth = torch.stack([torch.matrix_exp((t - 0.5) * a) @ y0 for t in ts])
    torch.testing.assert_close(ys, truth, rtol=1e-6, atol=1e-6)


def test_nonlinear_problem_agrees_with_scipy() -> None:
    def predators(t: float, y: Tensor) -> Tensor:
        return torch.stack([y[0] * (1.5 - y[1]), y[1] * (y[0] - 3.0)])

    ts = [0.0, 1.0, 3.3, 7.0]
    found = solve(predators, torch.tensor([10.0, 5.0], dtype=torch.float64), ts, Scheme(Dopri5(), PID(1e-9, 1e-9)))
    oracle = solve_ivp(
        lambda t, y: np.asarray(predators(t, torch.from_numpy(y))),
        (0.0, 7.0), [10.0, 5.0], method="DOP853", t_eval=ts, rtol=1e-11, atol=1e-11,
    )  # fmt: skip
    torch.testing.assert_close(found.ys, torch.from_numpy(oracle.y.T.copy()), rtol=1e-6, atol=1e-6)


def test_first_and_last_states_are_not_interpolated() -> None:
    coarse = solve(decay, ONE, [0.0, 0.03, 0.55, 1.0], RK4_STEPS)
    plain = solve(decay, ONE, [0.0, 1.0], RK4_STEPS)
    assert coarse.ys.shape == (4, 2)
    assert torch.equal(coarse.ys[0], ONE)
    assert torch.equal(coarse.ys[-1], plain.ys[-1])
    assert coarse.stats.accepted == plain.stats.accepted == 10


def test_last_step_ends_at_the_last_time_exactly() -> None:
    times: list[float] = []

    def field(t: float, y: Tensor) -> Tensor:
        times.append(t)
        return -y

    solve(field, ONE, [0.1, 0.7], DOPRI5)
    assert max(times) == 0.7


@pytest.mark.parametrize("shape", [(), (1,), (3, 2), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_states_of_any_shape_keep_shape_and_type(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    for scheme in (RK4_STEPS, DOPRI5):
        ys = solve(decay, torch.ones(shape, dtype=dtype), [0.0, 0.5, 1.0], scheme).ys
        assert ys.shape == (3, *shape)
        assert ys.dtype == dtype
        assert float(ys[-1].mean()) == pytest.approx(math.exp(-1.0), rel=1e-5)


def test_large_states_in_half_precision_are_finite() -> None:
    y0 = torch.full((1000,), 500.0, dtype=torch.float16)
    ys = solve(decay, y0, [0.0, 1.0], Scheme(RK4(), ConstantSteps(0.5))).ys
    assert float(ys[-1].float().mean()) == pytest.approx(500.0 * math.exp(-1.0), rel=1e-2)


def test_the_initial_state_is_not_modified() -> None:
    y0 = ONE.clone()
    for scheme in (RK4_STEPS, DOPRI5, Scheme(AdamsMoulton(), ConstantSteps(0.1))):
        solve(decay, y0, [0.0, 0.5, 1.0], scheme)
    assert torch.equal(y0, ONE)


@pytest.mark.parametrize("scheme", [RK4_STEPS, DOPRI5], ids=["constant", "adaptive"])
def test_a_batch_of_problems_runs_under_vmap(scheme: Scheme) -> None:
    a = torch.randn(3, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y0 = torch.ones(4, dtype=torch.float64)

    def end(a: Tensor) -> Tensor:
        return solve(lambda t, y: torch.tanh(a @ y) - y, y0, [0.0, 0.5, 1.0], scheme).ys[-1]

    torch.testing.assert_close(torch.func.vmap(end)(a), torch.stack([end(x) for x in a]), rtol=1e-5, atol=1e-6)
    jacobian = torch.func.vmap(torch.func.grad(lambda a: end(a).sum()))(a)
    a.requires_grad_()
    (wanted,) = torch.autograd.grad(torch.stack([end(x) for x in a]).sum(), a)
    torch.testing.assert_close(jacobian, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("ts", "message"),
    [
        ([0.0], "at least two times"),
        ([0.0, math.inf], "all of them finite"),
        ([0.0, math.nan], "all of them finite"),
        ([0.0, -1.0], "increase strictly; got -1.0 after 0.0.* back in time"),
        ([0.0, 0.5, 0.5, 1.0], "increase strictly; got 0.5 after 0.5"),
        ([0.0, 2.0, 1.0], "increase strictly; got 1.0 after 2.0"),
    ],
)
def test_meaningless_times_are_refused(ts: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solve(decay, ONE, ts, RK4_STEPS)


@pytest.mark.parametrize(
    ("y0", "message"),
    [
        (torch.ones(2, dtype=torch.int64), "floating point; got torch.int64"),
        (torch.tensor([1.0, math.nan, math.inf]), "2 values that are NaN or infinite"),
        (torch.ones(0, 3), r"empty: its shape is \(0, 3\)"),
    ],
)
def test_meaningless_states_are_refused(y0: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solve(decay, y0, [0.0, 1.0], RK4_STEPS)


@pytest.mark.parametrize("wrong", [lambda t, y: y.sum(), lambda t, y: y[None], lambda t, y: y.float()])
def test_slopes_of_another_shape_or_type_are_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="must return the shape and type of its state"):
        solve(wrong, ONE, [0.0, 1.0], RK4_STEPS)  # type: ignore[arg-type]


def test_a_scheme_needs_at_least_one_step() -> None:
    with pytest.raises(ValueError, match="`max_steps` of at least one; got 0"):
        Scheme(RK4(), ConstantSteps(0.1), max_steps=0)


def test_blow_up_with_constant_steps_raises_with_the_time() -> None:
    """y' = y^2 from 1 blows up at t = 1; with steps of 0.1 Euler overflows a few steps later."""
    with pytest.raises(
        SolverError, match=r"Euler\(\) failed because the state became NaN or infinite: .* t=(\S+) of 9 .* smaller `dt`"
    ) as caught:
        solve(lambda t, y: y**2, ONE, [0.0, 9.0], Scheme(Euler(), ConstantSteps(0.1)))
    reached = float(str(caught.value).split("t=")[1].split()[0])
    y, steps = 1.0, 0
    while math.isfinite(y):
        y, steps = y + 0.1 * y * y if y < 1e154 else math.inf, steps + 1
    assert reached == pytest.approx(0.1 * (steps - 1), abs=0.11)


def test_constant_steps_read_values_only_before_and_after() -> None:
    reads = 0

    class Counting(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            nonlocal reads
            reads += func in (Tensor.item, Tensor.tolist, Tensor.__bool__, Tensor.__float__, Tensor.__int__)
            return func(*args, **(kwargs or {}))

    with Counting():
        solve(decay, ONE, [0.0, 1.0], Scheme(RK4(), ConstantSteps(0.01)))
    assert reads == 2  # whether y0 is finite, and whether all the states were


def test_blow_up_with_adaptive_steps_raises_with_the_time() -> None:
    with pytest.raises(SolverError, match=r"Dopri5\(\) .* t=(0\.99|1)\S* of 2 with step size .* Try looser tolerances"):
        solve(lambda t, y: y**2, ONE, [0.0, 2.0], DOPRI5)


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("start", [0.0, 0.5])
def test_a_field_that_is_not_finite_is_reported_as_such_with_the_time(value: float, start: float) -> None:
    with pytest.raises(SolverError, match=r"vector field became NaN or infinite at t=(0|0\.49\d*|0\.5) of 1") as caught:
        solve(lambda t, y: y * (value if t >= start else -1.0), ONE, [0.0, 1.0], DOPRI5)
    assert "tolerances" not in str(caught.value)


def test_a_field_that_no_step_can_enter_is_reported_as_such() -> None:
    """The root of y, which falls below zero at t = 1, is NaN after every step from there."""
    with pytest.raises(SolverError, match=r"vector field became NaN or infinite at t=(0\.99\d*|1) of 2"):
        solve(lambda t, y: -1.0 - 1e-9 * y.sqrt(), ONE, [0.0, 2.0], DOPRI5)


def test_a_finite_field_whose_steps_underflow_is_not_called_nan() -> None:
    with pytest.raises(SolverError, match="step size underflowed"):
        solve(lambda t, y: y**2, ONE, [0.0, 2.0], DOPRI5)


def test_too_many_adaptive_steps_raise() -> None:
    with pytest.raises(SolverError, match=r"gave up after max_steps=7 steps: it reached t=0.*larger `max_steps`"):
        solve(decay, ONE, [0.0, 1.0], Scheme(Dopri5(), PID(1e-12, 1e-12), max_steps=7))


@pytest.mark.parametrize(
    ("time", "dt", "steps"), [(1.0, 1e-9, "1e[+]09"), (1e9, 0.5, "2e[+]09"), (1e300, 1e-300, "4.*e[+]18")]
)
@pytest.mark.parametrize("adjoint", [Direct(), Checkpointed(), Continuous()], ids=repr)
def test_too_many_constant_steps_are_refused_before_the_first(
    time: float, dt: float, steps: str, adjoint: Adjoint
) -> None:
    evaluations = 0

    def counted(t: float, y: Tensor) -> Tensor:
        nonlocal evaluations
        evaluations += 1
        return -y

    with pytest.raises(ValueError, match=rf"needs {steps} steps, and `max_steps` allows 10000: .* `dt` of at least"):
        solve(counted, ONE.clone().requires_grad_(), [0.0, time], Scheme(RK4(), ConstantSteps(dt), adjoint))
    assert evaluations == 0


@pytest.mark.parametrize(
    ("dtype", "rtol", "atol", "refused"),
    [
        (torch.float32, 0.0, 1e-14, True),
        (torch.float32, 1e-9, 1e-9, True),
        (torch.float32, 0.0, 1e-6, False),
        (torch.float32, 2e-7, 0.0, False),
        (torch.float64, 0.0, 1e-14, False),
        (torch.float64, 1e-17, 1e-17, True),
    ],
)
def test_tolerances_below_the_resolution_of_the_state_are_refused(
    dtype: torch.dtype, rtol: float, atol: float, refused: bool
) -> None:
    scheme, y0 = Scheme(Dopri5(), PID(rtol, atol), max_steps=100_000), torch.ones(3, dtype=dtype)
    if not refused:
        solve(decay, y0, [0.0, 0.01], scheme)
        return
    with pytest.raises(ValueError, match=r"less than torch\.float\d\d resolves .* at least \de-\d\d or `atol`"):
        solve(decay, y0, [0.0, 0.01], scheme)


def test_small_states_may_have_small_tolerances() -> None:
    y0 = torch.full((3,), 1e-9)
    ys = solve(decay, y0, [0.0, 1.0], Scheme(Dopri5(), PID(0.0, 1e-14))).ys
    assert float(ys[-1][0]) == pytest.approx(1e-9 * math.exp(-1.0), rel=1e-4)


def test_a_solve_stops_before_its_states_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process seems to grow by 2 MiB a step; 2,000 steps do not fit into 3 GiB, and 1,000 do."""
    seen: list[int] = []

    def resident() -> int:
        seen.append(len(seen) + 1)
        return 2**20 * 2 * step_loop.CHECK_EVERY * seen[-1]

    monkeypatch.setattr(step_loop, "resident_memory", resident)
    monkeypatch.setattr(step_loop, "free_memory", lambda: 3 * 2**30)
    with pytest.raises(SolverError, match=r"after 128 steps.* 3\.66 GiB more memory and 3 GiB are free.*checkpointed"):
        solve(decay, ONE, [0.0, 2.0], Scheme(Euler(), ConstantSteps(1e-3)))
    solve(decay, ONE, [0.0, 1.0], Scheme(Euler(), ConstantSteps(1e-3)))
