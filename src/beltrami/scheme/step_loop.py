"""The time-stepping loop on the host: one accepted step after another from t0 to t1."""

import math
from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from beltrami.errors import SolverError
from beltrami.scheme.base import State, Stats, Step, VectorField, is_batched_or_captured

if TYPE_CHECKING:
    from beltrami.scheme.time_stepping import Scheme

STRETCH = 1.001  # the last step may be longer by this factor, so that round-off leaves no tiny step at the end


class AcceptedStep(NamedTuple):
    """An accepted step, with the time, state and solver state at its beginning."""

    t0: float
    t1: float
    y0: Tensor
    state: State
    step: Step

    def states_at(self, ts: tuple[float, ...]) -> dict[float, Tensor]:
        """Return the states at those of the increasing ``ts`` that lie in (t0, t1]; at ``t1`` it is y1 itself."""
        inside = ts[bisect_right(ts, self.t0) : bisect_right(ts, self.t1)]
        return {t: self.step.y1 if t == self.t1 else self.step.interpolate(t) for t in inside}


def accepted_steps(
    f: VectorField, y0: Tensor, t0: float, t1: float, scheme: "Scheme", stats: Stats
) -> Iterator[AcceptedStep]:
    """Step from ``t0`` to exactly ``t1``; yield the accepted steps and count all steps in ``stats``.

    Raises:
        SolverError: after ``scheme.max_steps`` trials, if the step size underflows, or if a state is not finite. With
            constant steps the last is checked once, at the end, so that the host need not read every state.
    """
    solver, controller = scheme.solver, scheme.controller
    state = solver.init(f, t0, y0)
    dt = controller.first_step(f, t0, t1, y0, solver)
    memory: tuple[float, ...] = ()
    times, sums = [t0], []  # for the check at the end: a sum is finite exactly if the state is
    sum_dtype = torch.promote_types(y0.dtype, torch.float32)  # a sum of many values may overflow half precision
    t, y, trials = t0, y0, 0
    while t < t1:
        if trials == scheme.max_steps:
            raise failure(f"gave up after max_steps={trials} steps", t, t1, dt, scheme)
        if not dt >= smallest_step(t0, t1):
            raise failure("the step size underflowed", t, t1, dt, scheme)
        trials += 1
        last = t + STRETCH * dt >= t1
        length, end = (t1 - t, t1) if last else (dt, t + dt)
        try:
            step = solver.step(f, t, end, y, state)
        except SolverError:  # an implicit step without a solution; a shorter one may have it
            if not controller.adaptive:
                raise
            stats.rejected += 1
            dt = 0.25 * length
            continue
        accept, proposed, memory = controller.decide(step, length, y, solver, memory)
        if not accept:
            stats.rejected += 1
            dt = proposed
            continue
        stats.accepted += 1
        if not (controller.adaptive or is_batched_or_captured(step.y1)):
            times.append(end)
            sums.append(step.y1.detach().sum(dtype=sum_dtype))
        yield AcceptedStep(t, end, y, state, step)
        # The error of a last step that was cut short says little about longer steps: the earlier proposal still holds.
        dt = max(dt, proposed) if last else proposed
        t, y, state = end, step.y1, step.state
    stats.last_dt = dt
    finite = torch.isfinite(torch.stack(sums)).tolist() if sums else []
    if not all(finite):
        bad = finite.index(False)
        raise failure("met a state that is not finite", times[bad], times[-1], times[bad + 1] - times[bad], scheme)


def smallest_step(t0: float, t1: float) -> float:
    """Return the length below which a step between these times counts as underflow."""
    return 10.0 * math.ulp(max(abs(t0), abs(t1)))


def failure(what: str, t: float, t1: float, dt: float, scheme: "Scheme") -> SolverError:
    """Return the error that says what failed, which time was reached, and what to try."""
    remedy = (
        "looser tolerances, a larger `max_steps`, or ImplicitEuler or CrankNicolson if the problem is stiff"
        if scheme.controller.adaptive
        else "a smaller `dt`, a larger `max_steps`, an adaptive solver such as Dopri5 with PID, or an implicit one"
    )
    return SolverError(
        f"{scheme.solver!r} {what}: it reached t={t:.6g} of {t1:.6g} with step size {dt:.3g}. Try {remedy}."
    )
