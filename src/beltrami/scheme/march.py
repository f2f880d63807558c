"""The loop: one accepted step after another from t0 to t1."""

import math
from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.func import debug_unwrap

from beltrami.errors import SolverError
from beltrami.scheme.base import State, Stats, Step, VectorField

if TYPE_CHECKING:
    from beltrami.scheme.solve import Scheme

STRETCH = 1.001  # the last step may be this much longer, so that round-off leaves no sliver of a step behind


class Stride(NamedTuple):
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


def march(f: VectorField, y0: Tensor, t0: float, t1: float, scheme: "Scheme", stats: Stats) -> Iterator[Stride]:
    """Step from ``t0`` to exactly ``t1``, yielding the accepted steps and counting all of them in ``stats``.

    Raises:
        SolverError: after ``scheme.max_steps`` tries, when the step size underflows, or when the state is no longer
            finite. With equal steps the latter is found out at the end, sparing the device a wait at every step.
    """
    solver, controller = scheme.solver, scheme.controller
    state = solver.init(f, t0, y0)
    dt = controller.start(f, t0, t1, y0, solver)
    memory: tuple[float, ...] = ()
    ends: list[float] = []
    sums: list[Tensor] = []  # finite just where the state is, and a single pass over it
    wide = torch.promote_types(y0.dtype, torch.float32)  # half precision could not hold them
    smallest = 10.0 * math.ulp(max(abs(t0), abs(t1)))
    t, y, tries = t0, y0, 0
    while t < t1:
        if tries == scheme.max_steps:
            raise SolverError(_message(f"gave up after max_steps={tries} steps", t, t1, dt, scheme))
        if not dt >= smallest:
            raise SolverError(_message("the step size underflowed", t, t1, dt, scheme))
        last = t + STRETCH * dt >= t1
        end = t1 if last else t + dt
        tries += 1
        try:
            step = solver.step(f, t, end, y, state)
        except SolverError:  # an implicit step without a solution: a shorter one may have it
            if not controller.varies:
                raise
            stats.rejected += 1
            dt = 0.25 * (end - t)
            continue
        accept, proposed, memory = controller.judge(step, t1 - t if last else dt, y, solver, memory)
        if not accept:
            stats.rejected += 1
            dt = proposed
            continue
        stats.accepted += 1
        if not controller.varies:
            ends.append(end)
            sums.append(debug_unwrap(step.y1.detach().sum(dtype=wide)))
        yield Stride(t, end, y, state, step)
        # A last step cut short says little about the next one: the proposal it was cut from still stands.
        dt = max(dt, proposed) if last else proposed
        t, y, state = end, step.y1, step.state
    stats.last_dt = dt
    if sums:
        _check_finite(torch.stack(sums), t0, ends, scheme)


def _check_finite(sums: Tensor, t0: float, ends: list[float], scheme: "Scheme") -> None:
    finite = torch.isfinite(sums).reshape(len(ends), -1).all(1).tolist()
    if not all(finite):
        bad = finite.index(False)
        reached = ends[bad - 1] if bad else t0
        raise SolverError(_message("the state is not finite any more", reached, ends[-1], ends[bad] - reached, scheme))


def _message(what: str, t: float, t1: float, dt: float, scheme: "Scheme") -> str:
    remedy = (
        "looser tolerances, a larger `max_steps`, or ImplicitEuler or CrankNicolson if the problem is stiff"
        if scheme.controller.varies
        else "a smaller `dt`, a larger `max_steps`, an adaptive solver such as Dopri5 with PID, or an implicit one"
    )
    return f"{scheme.solver!r} {what}: reached t={t:.6g} of {t1:.6g} with step size {dt:.3g}. Try {remedy}."
