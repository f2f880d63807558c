"""A scheme of solver, controller and adjoint; and ``solve``, which checks its arguments and runs a scheme."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor
from torch.compiler import is_compiling

from beltrami.arguments import checked
from beltrami.scheme.adjoint.continuous import Continuous
from beltrami.scheme.adjoint.discrete import Direct
from beltrami.scheme.base import (
    Adjoint,
    Controller,
    InitialValueProblem,
    Solution,
    Solver,
    Stats,
    TimeStepping,
    VectorField,
    check_step_count,
    is_batched_or_captured,
)

_ADVICE = "use ConstantSteps, or a solver such as Dopri5, Bosh3 or Heun."


@checked
@dataclass(frozen=True)
class Scheme(TimeStepping):
    """The discretisation of time, such as ``Scheme(Dopri5(), PID(rtol=1e-4, atol=1e-6))``: the solver makes the steps,
    the controller chooses their lengths, the adjoint computes the gradient. A solve may try ``max_steps`` steps."""

    solver: Solver
    controller: Controller
    adjoint: Adjoint = Direct()  # noqa: RUF009 - frozen and empty, so it may be shared
    max_steps: int = 10_000

    def __post_init__(self) -> None:
        if self.max_steps < 1:
            raise ValueError(f"Scheme needs `max_steps` of at least one; got {self.max_steps}.")
        if not self.controller.adaptive:
            return
        name = type(self.controller).__name__
        if self.solver.equal_steps:
            raise ValueError(f"{self.solver!r} needs steps of equal length and does not work with {name}: {_ADVICE}")
        if self.solver.error_order is None and self.controller.needs_error:
            raise ValueError(f"{self.solver!r} has no error estimate, and {name} needs one: {_ADVICE}")

    @property
    def synchronises(self) -> bool:
        return self.controller.adaptive or self.solver.synchronises or not isinstance(self.adjoint, Direct)

    def check_times(self, ts: tuple[float, ...]) -> None:
        check_step_count(self.controller.least_steps(ts[0], ts[-1]), self.max_steps, ts[0], ts[-1])
        if isinstance(self.adjoint, Continuous) and self.adjoint.scheme is not None:
            for interval in pairwise(ts):
                self.adjoint.scheme.check_times(interval)

    def run(self, f: VectorField, y0: Tensor, ts: tuple[float, ...], params: tuple[Tensor, ...]) -> Solution:
        stats = Stats()
        return Solution(self.adjoint.run(InitialValueProblem(f, ts, self, stats), y0, params), stats)

    def resume(self, stats: Stats) -> "Scheme":
        if not self.controller.adaptive:  # older versions of torch.compile cannot build another Scheme
            return self
        return replace(self, controller=self.controller.resume(stats.last_dt))


@checked
def solve(
    f: VectorField, y0: Tensor, ts: Sequence[float], scheme: TimeStepping, params: Sequence[Tensor] = ()
) -> Solution:
    """Solve y' = f(t, y), y(ts[0]) = y0.

    Steps do not stop at the inner times; the states there are interpolated. Explicit solvers with ``Direct`` work under
    ``torch.func.vmap``: with ``PID`` every run of the batch takes the steps that it would take alone, and a run that
    fails is NaN instead of an error.

    Args:
        f: the vector field, ``f(t, y) -> Tensor`` of y's shape and type. The time is a float; with ``PID`` on a GPU or
            under ``vmap`` (see ``DeviceLoop``) it is a tensor () of y's type: write ``torch.as_tensor(t).sin()``, not
            ``math.sin(t)``, and no ``if`` on the time.
        ts: strictly increasing times at which the state is wanted.
        params: the tensors inside ``f`` that should receive gradients; they need not be leaves, and may be computed
            from ``y0`` and one another. ``Checkpointed`` and ``Continuous`` need them, ``Direct`` does not.

    Shapes:
        ``y0`` (...) -> ``ys`` (len(ts), ...).

    Raises:
        ValueError: if the solve would take too many steps.
        SolverError: if time stepping fails.
    """
    times = tuple(float(t) for t in ts)
    if len(times) < 2 or not all(math.isfinite(t) for t in times):
        raise ValueError(f"`ts` needs at least two times, all of them finite; got {list(times)}.")
    for before, after in pairwise(times):
        if after <= before:
            raise ValueError(
                f"`ts` must increase strictly; got {after} after {before}. Sort it and drop duplicates; to go back in "
                "time, give solve the field -f(-t, y)."
            )
    _check_state(y0)
    scheme.check_times(times)
    if is_compiling() and scheme.synchronises:
        from beltrami.scheme.uncompiled import run_scheme

        solution: Solution = run_scheme(scheme.run, f, y0, times, tuple(params))
        return solution
    return scheme.run(f, y0, times, tuple(params))


def _check_state(y0: Tensor) -> None:
    if not y0.dtype.is_floating_point:
        raise ValueError(f"`y0` must be floating point; got {y0.dtype}. Try `y0.float()`.")
    if y0.numel() == 0:
        raise ValueError(f"`y0` is empty: its shape is {tuple(y0.shape)}; at least one value is needed.")
    if y0.is_cuda or is_batched_or_captured(y0):
        return  # reading values would synchronise with the device; the solve itself finds values that are not finite
    finite = torch.isfinite(y0)
    if not bool(finite.all()):
        raise ValueError(f"`y0` holds {int((~finite).sum())} values that are NaN or infinite: clean them first.")
