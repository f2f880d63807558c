"""torchdiffeq, through its adapter, agrees with our solvers."""

import subprocess
import sys

import pytest
import torch
from torch import Tensor

from beltrami.errors import SolverError
from beltrami.scheme import (
    PID,
    Adjoint,
    Checkpointed,
    Continuous,
    Direct,
    Dopri5,
    Scheme,
    TimeStepping,
    TorchDiffEq,
    solve,
    torchdiffeq_adapter,
)

OURS = Scheme(Dopri5(), PID(1e-9, 1e-9))


def gradients(scheme: TimeStepping) -> tuple[Tensor, ...]:
    """Return values and gradients of a field that depends on time and on a tensor that is not a leaf."""
    g = torch.Generator().manual_seed(0)
    y0, w = (torch.randn(s, generator=g, dtype=torch.float64).requires_grad_() for s in ((4, 2), (4, 4)))
    a = torch.softmax(w, dim=1)
    solution = solve(lambda t, y: a @ torch.tanh(y) - y / (1.0 + t), y0, [0.0, 0.4, 1.0], scheme, (a,))
    loss = solution.ys[1].square().sum() + solution.ys[2].sin().sum()
    return solution.ys, *torch.autograd.grad(loss, (y0, w))


@pytest.mark.parametrize(
    "scheme",
    [
        TorchDiffEq("dopri5", rtol=1e-9, atol=1e-9),
        TorchDiffEq("dopri5", rtol=1e-9, atol=1e-9, adjoint=Continuous()),
        TorchDiffEq("rk4", rtol=0.0, atol=0.0, step_size=0.01),
        TorchDiffEq("rk4", rtol=0.0, atol=0.0, step_size=0.01, adjoint=Continuous()),
    ],
    ids=repr,
)
def test_torchdiffeq_agrees_with_us(scheme: TorchDiffEq) -> None:
    for found, wanted in zip(gradients(scheme), gradients(OURS), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6)


def test_forward_and_backward_evaluations_are_counted() -> None:
    y0 = torch.ones(2, requires_grad=True)
    scheme = TorchDiffEq("euler", rtol=0.0, atol=0.0, step_size=0.1, adjoint=Continuous())
    solution = solve(lambda t, y: -y, y0, [0.0, 1.0], scheme)
    assert (solution.stats.evaluations, solution.stats.backward_evaluations) == (10, 0)
    torch.autograd.backward(solution.ys[-1].sum())
    assert (solution.stats.evaluations, solution.stats.backward_evaluations) == (10, 10)


@pytest.mark.parametrize("adjoint", [Checkpointed(), Continuous(OURS)], ids=["Checkpointed", "Continuous"])
def test_adjoints_that_torchdiffeq_lacks_are_refused(adjoint: Adjoint) -> None:
    with pytest.raises(ValueError, match=r"Direct\(\) and Continuous\(\); got "):
        TorchDiffEq("dopri5", rtol=1e-3, atol=1e-3, adjoint=adjoint)


def test_params_computed_from_each_other_are_refused_by_continuous() -> None:
    w = torch.ones(2, requires_grad=True)
    a = torch.tanh(2.0 * w)
    problem = lambda t, y: a * y + w, torch.ones(2), [0.0, 1.0]
    with pytest.raises(ValueError, match=r"computed from params\[1\]"):
        solve(*problem, TorchDiffEq("dopri5", rtol=1e-3, atol=1e-3, adjoint=Continuous()), (a, w))
    found = solve(*problem, TorchDiffEq("dopri5", rtol=1e-3, atol=1e-3, adjoint=Direct()), (a, w))
    assert found.ys.requires_grad


def test_failure_is_a_solver_error() -> None:
    with pytest.raises(SolverError, match=r"torchdiffeq's dopri5 failed between t=0 and 2: .*Try looser"):
        solve(lambda t, y: y**2, torch.ones(1), [0.0, 2.0], TorchDiffEq("dopri5", rtol=1e-6, atol=1e-6))


def test_too_many_constant_steps_are_refused() -> None:
    with pytest.raises(ValueError, match=r"needs 1e\+09 steps, and `max_steps` allows 10000"):
        solve(lambda t, y: -y, torch.ones(1), [0.0, 1.0], TorchDiffEq("rk4", rtol=1e-3, atol=1e-3, step_size=1e-9))


def test_too_many_evaluations_are_a_solver_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torchdiffeq_adapter, "MAX_EVALUATIONS", 100)
    with pytest.raises(SolverError, match="100 evaluations of the field did not suffice"):
        solve(lambda t, y: -y, torch.ones(1), [0.0, 50.0], TorchDiffEq("dopri5", rtol=1e-6, atol=1e-9))


def test_a_missing_torchdiffeq_raises_with_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchdiffeq", None)
    with pytest.raises(ImportError, match=r"pip install beltrami\[torchdiffeq\]"):
        solve(lambda t, y: -y, torch.ones(1), [0.0, 1.0], TorchDiffEq("dopri5", rtol=1e-3, atol=1e-3))


@pytest.mark.slow
def test_scheme_does_not_import_torchdiffeq() -> None:
    code = "import sys, beltrami.scheme; sys.exit('torchdiffeq' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
