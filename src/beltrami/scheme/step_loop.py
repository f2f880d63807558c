"""The time-stepping loop on the host: one accepted step after another from t0 to t1."""

import math
from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.compiler import is_compiling
from torch.func import debug_unwrap

from beltrami.errors import NotFinite, SolverError
from beltrami.memory import free_memory, in_bytes, resident_memory
from beltrami.scheme.base import State, Stats, Step, VectorField, is_batched_or_captured

if TYPE_CHECKING:
    from beltrami.scheme.time_stepping import Scheme

STRETCH = 1.001  # the last step may be longer by this factor, so that round-off leaves no tiny step at the end
CHECK_EVERY = 64  # steps between two checks of the memory that steps take
NEGLIGIBLE = 2**28  # bytes below which the free memory is not looked up


class AcceptedStep(NamedTuple):
    """An accepted step, with the time, state and solver state at its beginning."""

    t0: float
    t1: float
    y0: Tensor
    state: State
    step: Step

    def states_at(self, ts: tuple[float, ...]) -> dict[float, Tensor]:
        """Return the states at those of the increasing ``ts`` that lie in (t0, t1]; at ``t1`` it is y1 itself."""
        if is_compiling():  # torch.compile cannot trace bisect
            inside = tuple(t for t in ts if self.t0 < t <= self.t1)
        else:
            inside = ts[bisect_right(ts, self.t0) : bisect_right(ts, self.t1)]
        return {t: self.step.y1 if t == self.t1 else self.step.interpolate(t) for t in inside}


def accepted_steps(
    f: VectorField, y0: Tensor, t0: float, t1: float, scheme: "Scheme", stats: Stats
) -> Iterator[AcceptedStep]:
    """Step from ``t0`` to exactly ``t1``; yield the accepted steps and count all steps in ``stats``.

    Raises:
        SolverError: after ``scheme.max_steps`` trials, if the step size underflows, if a state is not finite, or if the
            memory of the machine will not suffice. With constant steps a state that is not finite is found at the end,
            so that the host need not read every state.
    """
    solver, controller = scheme.solver, scheme.controller
    memory_check = MemoryCheck(y0, scheme.max_steps)
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
            raise underflow(f, y, t, t1, dt, scheme)
        memory_check(trials, t1 - t, dt)
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
        dt = times[bad + 1] - times[bad]
        what = "failed because the state became NaN or infinite"
        raise failure(what, times[bad], times[-1], dt, scheme, kind=NotFinite)


class MemoryCheck:
    """Stops a solve on the CPU whose further steps would need more memory than is free: with a gradient, every step
    keeps its states. The need is estimated from the last ``CHECK_EVERY`` steps and the present step length."""

    def __init__(self, y0: Tensor, max_steps: int) -> None:
        self.applies, self.max_steps, self.before = y0.device.type == "cpu" and not is_compiling(), max_steps, 0

    def __call__(self, trials: int, time_left: float, dt: float) -> None:
        """Check after ``trials`` steps; raise ``SolverError`` if the memory will not suffice."""
        if not self.applies or trials % CHECK_EVERY or not trials or not (held := resident_memory()):
            return
        grown, self.before = held - (self.before or held), held
        needed = grown / CHECK_EVERY * min(time_left / max(dt, 1e-300), self.max_steps - trials)
        if needed > NEGLIGIBLE and needed > (free := free_memory()):
            raise SolverError(
                f"the solve stopped after {trials} steps, because the states of all steps would need about "
                f"{in_bytes(needed)} more memory and {in_bytes(free)} are free. Try looser tolerances or longer steps, "
                "a shorter time, or the checkpointed adjoint, which keeps few states."
            )


def smallest_step(t0: float, t1: float) -> float:
    """Return the length below which a step between these times counts as underflow."""
    return 10.0 * math.ulp(max(abs(t0), abs(t1)))


@torch.no_grad()
def underflow(f: VectorField, y: Tensor, t: float, t1: float, dt: float, scheme: "Scheme") -> SolverError:
    """Return the error of a step size that underflowed at the state ``y``: the cause may be a value that is not finite.

    ``f`` is evaluated at the state, and a little later.
    """
    dy = f(t, y)
    little = 100.0 * smallest_step(t, t1)
    later = f(t + little, torch.add(y, dy, alpha=little))
    if _all_finite(y) and _all_finite(dy) and _all_finite(later):
        return failure("failed because the step size underflowed", t, t1, dt, scheme)
    what = "vector field" if _all_finite(y) else "state"
    return NotFinite(
        f"{scheme.solver!r} failed because the {what} became NaN or infinite at t={t:.6g} of {t1:.6g}: shorter steps "
        "do not help. Check the values that the field is computed from, or try a smaller learning rate."
    )


def failure(
    what: str, t: float, t1: float, dt: float, scheme: "Scheme", *, kind: type[SolverError] = SolverError
) -> SolverError:
    """Return the error that says what failed, which time was reached, and what to try."""
    remedy = (
        "looser tolerances, a larger `max_steps`, or an implicit solver if the problem is stiff"
        if scheme.controller.adaptive
        else "a smaller `dt`, an adaptive scheme, or an implicit solver"
    )
    return kind(f"{scheme.solver!r} {what}: it reached t={t:.6g} of {t1:.6g} with step size {dt:.3g}. Try {remedy}.")


def _all_finite(x: Tensor) -> bool:
    return bool(torch.isfinite(debug_unwrap(x)).all())
