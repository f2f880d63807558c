"""The autopilot: adaptive steps chosen on the device, each run of a batch by its own errors."""

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.func import debug_unwrap

from beltrami.scheme.base import Stats, Step, Time, VectorField, transformed
from beltrami.scheme.controller import PID
from beltrami.scheme.device_pid import DevicePID, LoopState
from beltrami.scheme.loop import failure
from beltrami.scheme.readback import Readback, Report
from beltrami.scheme.runge_kutta import RungeKutta

if TYPE_CHECKING:
    from beltrami.scheme.solve import Scheme


@dataclass(frozen=True)
class DeviceLoop:
    """The steps that ``march`` takes, without a number leaving the device before the next step is under way.

    A try is made whether or not the one before was accepted, from where that leaves the state: ``torch.where`` keeps
    the old state where a step is refused, and a run that has arrived makes steps of no length until all have. What was
    found is seen a try late (see ``Readback``): a GPU makes one try in vain at the end, and its queue never runs dry.

    Gradients go through the accepted steps alone, though the graph of every try is kept. A refused step is handed a
    cotangent of zero and hands on zeros, unless it met values that are not finite; if it did, the accepted steps are
    taken again, by themselves.

    Args:
        scheme: of a ``RungeKutta`` solver with an error estimate, and a ``PID`` controller.
    """

    scheme: "Scheme"

    @staticmethod
    def takes(scheme: "Scheme", y0: Tensor) -> bool:
        """Whether it is for this scheme, and to look at every step would be to wait, or to look at many runs."""
        steers = isinstance(scheme.controller, PID) and isinstance(scheme.solver, RungeKutta)
        return steers and (y0.is_cuda or transformed())

    @property
    def _parts(self) -> tuple[RungeKutta, PID]:
        solver, controller = self.scheme.solver, self.scheme.controller
        assert isinstance(solver, RungeKutta), "see `takes`"
        assert isinstance(controller, PID), "see `takes`"
        return solver, controller

    def run(self, f: VectorField, y0: Tensor, ts: tuple[float, ...], stats: Stats) -> Tensor:
        """The states at the times ``ts``, (len(ts), ...); NaN for a run of a batch that failed.

        Raises:
            SolverError: as ``march`` does, after the last step, and not for a batch.
        """
        f = _of_tensors(f)
        log = _Log(ts, stats)
        last, ys = self._sail(f, y0, log)
        if log.broke and torch.is_grad_enabled():
            ys = self._retrace(f, y0, log)
        late = last.t < ts[-1]
        if debug_unwrap(late) is late:
            log.check(self.scheme)
            return ys
        stats.last_dt = last.dt
        return ys.masked_fill(late, math.nan)

    def _sail(self, f: VectorField, y0: Tensor, log: "_Log") -> tuple[LoopState, Tensor]:
        (solver, controller), ts = self._parts, log.ts
        helm, lookout = DevicePID(controller, solver, ts[0], ts[-1]), Readback[_Try]()
        state, y, path = solver.init(f, ts[0], y0), y0, _Path(ts, y0)
        now = helm.start(f, y0)
        for _ in range(self.scheme.max_steps):
            leg = helm.plan(now)
            step = solver.step(f, now.t, leg.end, y, state)
            accept, after, e = helm.judge(step, y, now, leg)
            lookout.send((now.t, after.t, after.dt, e), _Try(now.t, after.t, step))
            y = torch.where(accept, step.y1, y)
            state = tuple(torch.where(accept, new, old) for new, old in zip(step.state, state, strict=True))
            now = after
            log.enter(lookout.seen(), path)
            if log.over:
                break
        else:
            log.enter(lookout.rest(), path)
        return now, path.to(y)

    def _retrace(self, f: VectorField, y0: Tensor, log: "_Log") -> Tensor:
        """The accepted steps once more; where one of a batch was refused, of no length."""
        (solver, _), ts = self._parts, log.ts
        state, y, path = solver.init(f, ts[0], y0), y0, _Path(ts, y0)
        for t0, t1, asked in log.legs:
            step = solver.step(f, t0, t1, y, state)
            path.observe(_Try(t0, t1, step), asked)
            y, state = step.y1, step.state
        return path.to(y)


class _Try(NamedTuple):
    """A step from ``t0``, and the time ``t1`` reached by it, which is ``t0`` still where it was refused."""

    t0: Tensor
    t1: Tensor
    step: Step


class _Path:
    """The states at the times asked for, as far as they are known."""

    def __init__(self, ts: tuple[float, ...], y0: Tensor) -> None:
        self.y0, self.between = y0, dict.fromkeys(ts[1:-1], y0)

    def observe(self, tried: _Try, asked: tuple[float, ...]) -> None:
        for t in asked:
            covered = (tried.t0 < t) & (t <= tried.t1)
            self.between[t] = torch.where(covered, tried.step.interpolate(t), self.between[t])

    def to(self, y1: Tensor) -> Tensor:
        return torch.stack([self.y0, *self.between.values(), y1])


class _Log:
    """What the host has seen of a march: how far it is, and the legs on which somebody got on."""

    def __init__(self, ts: tuple[float, ...], stats: Stats) -> None:
        self.ts, self.stats = ts, stats
        self.legs: list[tuple[Tensor, Tensor, tuple[float, ...]]] = []
        self.broke = False  # whether a step was refused for values that are not finite
        self.over = False  # whether every run has arrived or failed
        self.t, self.dt = ts[0], 0.0  # where the run is, if there is one alone

    def enter(self, reports: Iterable[Report[_Try]], path: _Path) -> None:
        end = self.ts[-1]
        for runs, tried in reports:
            if self.over:
                return  # nobody moves any more
            self._count([(t0, t1) for t0, t1, _, _ in runs if t1 > t0], tried, path)
            self.broke |= any(t0 < end and e == math.inf for t0, _, _, e in runs)
            self.over = all(t1 >= end or dt == 0.0 for _, t1, dt, _ in runs)
            _, self.t, self.dt, _ = runs[0]

    def check(self, scheme: "Scheme") -> None:
        """Refuse a march of a single run that did not arrive."""
        self.stats.last_dt, end = self.dt, self.ts[-1]
        if self.t < end:
            what = "the step size underflowed" if self.over else f"gave up after max_steps={scheme.max_steps} steps"
            raise failure(what, self.t, end, self.dt, scheme)

    def _count(self, moved: list[tuple[float, float]], tried: _Try, path: _Path) -> None:
        if not moved:
            self.stats.rejected += 1
            return
        self.stats.accepted += 1
        between = self.ts[1:-1]
        first, last = min(t0 for t0, _ in moved), max(t1 for _, t1 in moved)
        asked = between[bisect_right(between, first) : bisect_right(between, last)]
        self.legs.append((tried.t0, tried.t1, asked))
        path.observe(tried, asked)


def _of_tensors(f: VectorField) -> VectorField:
    """``f`` shown every time as a tensor (), of the state's type, lest a state of less precision be promoted."""

    def field(t: Time, y: Tensor) -> Tensor:
        return f(t.to(y.dtype) if isinstance(t, Tensor) else y.new_full((), t), y)

    return field
