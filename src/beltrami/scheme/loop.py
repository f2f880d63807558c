"""The loop: one accepted step after another from t0 to t1."""

import math
from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from beltrami.errors import SolverError
from beltrami.scheme.base import State, Stats, Step, VectorField, is_batched_or_captured

if TYPE_CHECKING:
    from beltrami.scheme.solve import Scheme

STRETCH = 1.001  # the last step may be this much longer, so that round-off leaves no sliver of a step behind


class AcceptedStep(NamedTuple):
    """An accepted step, with where it began."""

    t0: float
    t1: float
    y0: Tensor
    state: State
    step: Step

    def observe(self, ts: tuple[float, ...]) -> dict[float, Tensor]:
        """The states at those of the increasing ``ts`` that lie in (t0, t1]; at ``t1`` it is y1 itself."""
        seen = ts[bisect_right(ts, self.t0) : bisect_right(ts, self.t1)]
        return {t: self.step.y1 if t == self.t1 else self.step.interpolate(t) for t in seen}


def accepted_steps(
    f: VectorField, y0: Tensor, t0: float, t1: float, scheme: "Scheme", stats: Stats
) -> Iterator[AcceptedStep]:
    """Step from ``t0`` to exactly ``t1``, yielding the accepted steps and counting all of them in ``stats``.

    Raises:
        SolverError: after ``scheme.max_steps`` tries, when the step size underflows, or when the state is no longer
            finite. With equal steps the latter is found out at the end, sparing the device a wait at every step.
    """
    solver, controller = scheme.solver, scheme.controller
    state = solver.init(f, t0, y0)
    dt = controller.start(f, t0, t1, y0, solver)
    memory: tuple[float, ...] = ()
    watch = _Watch(t0, y0)
    t, y, tries = t0, y0, 0
    while t < t1:
        if tries == scheme.max_steps:
            raise failure(f"gave up after max_steps={tries} steps", t, t1, dt, scheme)
        if not dt >= shortest(t0, t1):
            raise failure("the step size underflowed", t, t1, dt, scheme)
        tries += 1
        last = t + STRETCH * dt >= t1
        length, end = (t1 - t, t1) if last else (dt, t + dt)
        try:
            step = solver.step(f, t, end, y, state)
        except SolverError:  # an implicit step without a solution: a shorter one may have it
            if not controller.varies:
                raise
            stats.rejected += 1
            dt = 0.25 * length
            continue
        accept, proposed, memory = controller.judge(step, length, y, solver, memory)
        if not accept:
            stats.rejected += 1
            dt = proposed
            continue
        stats.accepted += 1
        if not controller.varies:
            watch.add(end, step.y1)
        yield AcceptedStep(t, end, y, state, step)
        # A last step cut short says little about the next one: the proposal it was cut from still stands.
        dt = max(dt, proposed) if last else proposed
        t, y, state = end, step.y1, step.state
    stats.last_dt = dt
    watch.check(scheme)


class _Watch:
    """Remembers, on the device, whether each state was finite: its sum is, just where the state is."""

    def __init__(self, t0: float, y0: Tensor) -> None:
        self.times: list[float] = [t0]
        self.sums: list[Tensor] = []
        self.dtype = torch.promote_types(y0.dtype, torch.float32)  # half precision could not hold a sum

    def add(self, t: float, y: Tensor) -> None:
        if not is_batched_or_captured(y):
            self.times.append(t)
            self.sums.append(y.detach().sum(dtype=self.dtype))

    def check(self, scheme: "Scheme") -> None:
        """Wait for the device, once, and refuse what was not finite."""
        if not self.sums:
            return
        finite = torch.isfinite(torch.stack(self.sums)).tolist()
        if not all(finite):
            bad = finite.index(False)
            t, dt = self.times[bad], self.times[bad + 1] - self.times[bad]
            raise failure("met a state that is not finite", t, self.times[-1], dt, scheme)


def shortest(t0: float, t1: float) -> float:
    """The length below which a step between these times has underflowed."""
    return 10.0 * math.ulp(max(abs(t0), abs(t1)))


def failure(what: str, t: float, t1: float, dt: float, scheme: "Scheme") -> SolverError:
    """The error that says what went wrong, how far the march got, and what to do."""
    remedy = (
        "looser tolerances, a larger `max_steps`, or ImplicitEuler or CrankNicolson if the problem is stiff"
        if scheme.controller.varies
        else "a smaller `dt`, a larger `max_steps`, an adaptive solver such as Dopri5 with PID, or an implicit one"
    )
    return SolverError(
        f"{scheme.solver!r} {what}: it reached t={t:.6g} of {t1:.6g} with step size {dt:.3g}. Try {remedy}."
    )
