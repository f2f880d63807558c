"""Adaptive steps chosen on the device, without a host synchronisation, for each run of a batch by its own errors."""

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.func import debug_unwrap

from beltrami.scheme.base import Stats, Step, Time, VectorField
from beltrami.scheme.controller import PID, SMALLEST_ERROR, error_exponent
from beltrami.scheme.norm import WholeNorm
from beltrami.scheme.runge_kutta import RungeKutta
from beltrami.scheme.step_loop import STRETCH, MemoryCheck, failure, smallest_step, underflow

if TYPE_CHECKING:
    from beltrami.scheme.time_stepping import Scheme

Trial = tuple[Tensor, Tensor, Step]  # t0, the time reached, which is t0 where the step was rejected, and the step
MAX_PENDING = 1  # reports in flight: while the host waits for the oldest, the device works on what was queued after it


class LoopState(NamedTuple):
    """The state of the step-size control: tensors () in double precision, under ``vmap`` one for each run."""

    t: Tensor  # the time reached
    dt: Tensor  # the length of the next step; zero after the step size has underflowed
    memory: tuple[Tensor, Tensor]  # the errors of the last two accepted steps, the newest first; initially one


class DeviceLoop:
    """The steps of ``accepted_steps`` with ``PID`` on tensors: every ``if`` is a ``torch.where``.

    A trial step begins before the host knows whether the previous one was accepted. ``torch.where`` keeps the old state
    of a run whose step is rejected; a run that has arrived, or failed, makes steps of length zero until all have. The
    host reads the decisions one trial late (``Readback``), so a GPU makes one trial too many and is never idle.

    Gradients flow through the accepted steps only, although autograd records every trial: a rejected step gets a zero
    cotangent and returns zeros, unless it met values that are not finite. Then the accepted steps are computed again.
    """

    def __init__(self, scheme: "Scheme", ts: tuple[float, ...]) -> None:
        assert isinstance(scheme.solver, RungeKutta), "see `applies_to`"
        assert isinstance(scheme.controller, PID), "see `applies_to`"
        self.scheme, self.solver, self.pid, self.ts = scheme, scheme.solver, scheme.controller, ts
        self.order = error_exponent(scheme.solver)

    @staticmethod
    def applies_to(scheme: "Scheme", y0: Tensor) -> bool:
        """Whether the scheme is adaptive and explicit, and ``y0`` is a whole state, on a GPU or in a ``vmap`` batch."""
        pid, explicit = scheme.controller, isinstance(scheme.solver, RungeKutta)
        supported = explicit and isinstance(pid, PID) and isinstance(pid.norm, WholeNorm)
        return supported and (y0.is_cuda or torch._C._are_functorch_transforms_active())

    def run(self, f: VectorField, y0: Tensor, stats: Stats) -> Tensor:
        """Return the states at the times ``ts``, (len(ts), ...). A failure raises ``SolverError`` after the last step;
        in a batch, the states of a run that failed are NaN instead."""
        f = _with_tensor_times(f)
        progress = _Progress(self.ts, y0, stats)
        now, y1 = self._try_steps(f, y0, progress)
        if progress.overflowed and torch.is_grad_enabled():
            y1 = self._repeat_accepted(f, y0, progress)
        ys = torch.stack([y0, *progress.inner.values(), y1])
        late = now.t < self.ts[-1]
        if debug_unwrap(late) is late:
            progress.check(f, y1, self.scheme)
            return ys
        stats.last_dt = now.dt
        return ys.masked_fill(late, math.nan)

    def _try_steps(self, f: VectorField, y0: Tensor, progress: "_Progress") -> tuple[LoopState, Tensor]:
        readback = Readback()
        state, y = self.solver.init(f, self.ts[0], y0), y0
        now = self._start(f, y0)
        goal = torch.full_like(now.t, self.ts[-1])
        memory_check = MemoryCheck(y0, self.scheme.max_steps)
        for trials in range(self.scheme.max_steps):
            memory_check(trials, self.ts[-1] - progress.t, progress.dt)
            last = torch.add(now.t, now.dt, alpha=STRETCH) >= self.ts[-1]
            end = torch.where(last, goal, now.t + now.dt)
            step = self.solver.step(f, now.t, end, y, state)
            accept, after, e = self._decide(step, y, now, end, last)
            readback.send((now.t, after.t, after.dt, e), (now.t, after.t, step))
            y = torch.where(accept, step.y1, y)
            state = tuple(torch.where(accept, new, old) for new, old in zip(step.state, state, strict=True))
            now = after
            progress.update(readback.arrived())
            if progress.finished:
                break
        else:
            progress.update(readback.arrived(max_pending=0))
        return now, y

    def _repeat_accepted(self, f: VectorField, y0: Tensor, progress: "_Progress") -> Tensor:
        """Compute the accepted steps again; where one run of a batch was rejected, its step has length zero."""
        state, y = self.solver.init(f, self.ts[0], y0), y0
        progress.inner = dict.fromkeys(self.ts[1:-1], y0)
        for t0, t1, times in progress.accepted:
            step = self.solver.step(f, t0, t1, y, state)
            progress.interpolate((t0, t1, step), times)
            y, state = step.y1, step.state
        return y

    def _start(self, f: VectorField, y0: Tensor) -> LoopState:
        t0, t1, dt = self.ts[0], self.ts[-1], self.pid.first
        t = torch.full((), t0, dtype=torch.float64, device=y0.device)  # filled there: a copy would synchronise
        if dt is None:
            dt = self.pid.estimate_first(f, t0, t1, y0, self.solver, read=lambda h: h)
        dt = dt if isinstance(dt, Tensor) else torch.full_like(t, dt)
        return LoopState(t, self._zero_if_underflowed(dt), (torch.ones_like(t),) * 2)

    @torch.no_grad()
    def _decide(
        self, step: Step, y0: Tensor, now: LoopState, end: Tensor, last: Tensor
    ) -> tuple[Tensor, LoopState, Tensor]:
        """Return whether a step from ``now.t`` to ``end`` is accepted, the next state, and the error e, infinite where
        it is NaN. The ``last`` step is shortened to end at t1."""
        length = torch.where(last, self.ts[-1] - now.t, now.dt)
        e = (
            self.pid.norm.rms(self.pid.scaled_error(step, y0))
            .nan_to_num(nan=math.inf, posinf=math.inf)
            .clamp(min=SMALLEST_ERROR)
        )
        accept = e <= 1.0
        proposed = length * self.pid.step_factor((e, *now.memory), accept, self.order)
        dt = torch.where(last & accept, torch.maximum(now.dt, proposed), proposed)  # see `accepted_steps`
        t, memory = torch.where(accept, end, now.t), now.memory
        if self.pid.pcoeff != 0.0 or self.pid.dcoeff != 0.0:
            memory = torch.where(accept, e, memory[0]), torch.where(accept, *memory)
        return accept, LoopState(t, self._zero_if_underflowed(dt), memory), e

    def _zero_if_underflowed(self, dt: Tensor) -> Tensor:
        return torch.threshold(dt, math.nextafter(smallest_step(self.ts[0], self.ts[-1]), 0.0), 0.0)


class _Progress:
    """What the host knows about a solve: the times reached, the accepted steps, and the states at inner times."""

    def __init__(self, ts: tuple[float, ...], y0: Tensor, stats: Stats) -> None:
        self.ts, self.stats = ts, stats
        self.inner = dict.fromkeys(ts[1:-1], y0)
        self.accepted: list[tuple[Tensor, Tensor, tuple[float, ...]]] = []  # t0, t1 and the inner times between
        self.overflowed = False  # whether a step was rejected for values that are not finite
        self.finished = False  # whether every run has arrived or failed
        self.t, self.dt = ts[0], 0.0  # of the first run

    def update(self, reports: Iterable[tuple[list[list[float]], Trial]]) -> None:
        end, inner = self.ts[-1], self.ts[1:-1]
        for runs, trial in reports:
            if self.finished:
                return
            moved = [(t0, t1) for t0, t1, _, _ in runs if t1 > t0]
            if moved:
                self.stats.accepted += 1
                first, last = min(t0 for t0, _ in moved), max(t1 for _, t1 in moved)
                times = inner[bisect_right(inner, first) : bisect_right(inner, last)]
                self.accepted.append((*trial[:2], times))
                self.interpolate(trial, times)
            else:
                self.stats.rejected += 1
            self.overflowed |= any(t0 < end and e == math.inf for t0, _, _, e in runs)
            self.finished = all(t1 >= end or dt == 0.0 for _, t1, dt, _ in runs)
            _, self.t, self.dt, _ = runs[0]

    def interpolate(self, trial: Trial, times: tuple[float, ...]) -> None:
        t0, t1, step = trial
        for t in times:
            self.inner[t] = torch.where((t0 < t) & (t <= t1), step.interpolate(t), self.inner[t])

    def check(self, f: VectorField, y: Tensor, scheme: "Scheme") -> None:
        """Raise if a single run, which arrived at the state ``y``, did not reach the end."""
        self.stats.last_dt, end = self.dt, self.ts[-1]
        if self.t < end:
            if self.finished:
                raise underflow(f, y, self.t, end, self.dt, scheme)
            raise failure(f"gave up after max_steps={scheme.max_steps} steps", self.t, end, self.dt, scheme)


class Readback:
    """A queue of reports of a few numbers each, from the device to the host, in order.

    On a GPU a report is copied to pinned memory, followed by an event. The host waits, for the oldest report, only if
    more than ``MAX_PENDING`` are in flight. On the CPU a report arrives at once.
    """

    def __init__(self) -> None:
        self.queue: deque[tuple[Tensor, torch.cuda.Event | None, Any]] = deque()

    def send(self, numbers: Sequence[Tensor], about: Any) -> None:
        """Report doubles of shape (), under ``vmap`` one of each for every run, and what they are about."""
        runs = torch.broadcast_tensors(*(debug_unwrap(x) for x in numbers))
        values, copied = torch.stack(runs, dim=-1).view(-1, len(numbers)), None
        if values.is_cuda:
            stream = torch.cuda.current_stream(values.device)
            values = torch.empty(values.shape, dtype=values.dtype, pin_memory=True).copy_(values, non_blocking=True)
            copied = torch.cuda.Event()
            copied.record(stream)
        self.queue.append((values, copied, about))

    def arrived(self, max_pending: int = MAX_PENDING) -> Iterator[tuple[list[list[float]], Any]]:
        """Yield the reports that have arrived, as (numbers of every run, about); with 0, wait for all of them."""
        while self.queue:
            values, copied, about = self.queue[0]
            if copied is not None and not copied.query():
                if len(self.queue) <= max_pending:
                    return
                copied.synchronize()
            self.queue.popleft()
            yield values.tolist(), about


def _with_tensor_times(f: VectorField) -> VectorField:
    """Return ``f`` with every time as a tensor () of the state's type, so that it does not promote the slope."""

    def field(t: Time, y: Tensor) -> Tensor:
        return f(t.to(y.dtype) if isinstance(t, Tensor) else y.new_full((), t), y)

    return field
