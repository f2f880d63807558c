"""The helm: a PID's law in tensors, for steps at whose errors nobody looks."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from beltrami.scheme.base import Solver, Step, VectorField
from beltrami.scheme.controller import PID, SMALLEST_ERROR, exponent, rms
from beltrami.scheme.loop import STRETCH, shortest


class LoopState(NamedTuple):
    """Where a march is and how it means to go on.

    Args:
        t: the time reached.
        dt: the length of the next step, zero for a march that has failed.
        memory: the errors of the last two accepted steps, the newest first; one where there were none.
        goal: the time to arrive at.

    Shapes:
        all (), in double precision on the device; under ``torch.func.vmap`` each run has its own.
    """

    t: Tensor
    dt: Tensor
    memory: tuple[Tensor, Tensor]
    goal: Tensor


class TrialStep(NamedTuple):
    """A step to be tried: where it ends, its length, and whether it is the last, cut to arrive."""

    end: Tensor
    length: Tensor
    last: Tensor


@dataclass(frozen=True)
class DevicePID:
    """Takes a march from ``t0`` to ``t1`` by the decisions that ``march`` and ``PID.judge`` make with numbers, each
    ``if`` a ``torch.where``.

    A run that has arrived, or failed, makes steps of no length from there on, and needs no case of its own. No number
    is copied to the device, which would be to wait: those it needs are filled in there.
    """

    controller: PID
    solver: Solver
    t0: float
    t1: float

    def start(self, f: VectorField, y0: Tensor) -> LoopState:
        t = torch.full((), self.t0, dtype=torch.float64, device=y0.device)
        one, goal, first = torch.ones_like(t), torch.full_like(t, self.t1), self.controller.first
        if first is None:
            first = self.controller.opening(f, self.t0, self.t1, y0, self.solver, look=lambda h: h)
        dt = first if isinstance(first, Tensor) else torch.full_like(t, first)
        return LoopState(t, self._afloat(dt), (one, one), goal)

    def plan(self, now: LoopState) -> TrialStep:
        t, dt = now.t, now.dt
        last = torch.add(t, dt, alpha=STRETCH) >= self.t1
        return TrialStep(torch.where(last, now.goal, t + dt), torch.where(last, self.t1 - t, dt), last)

    @torch.no_grad()
    def judge(self, step: Step, y0: Tensor, now: LoopState, leg: TrialStep) -> tuple[Tensor, LoopState, Tensor]:
        """Whether a try is accepted, how to go on, and its error e, infinite where it was no number."""
        pid = self.controller
        e = rms(pid.scaled(step, y0)).nan_to_num(nan=math.inf, posinf=math.inf).clamp(min=SMALLEST_ERROR)
        accept = e <= 1.0
        proposed = leg.length * (pid.safety * self._ratio(e, accept, now.memory)).clamp(pid.min_factor, pid.max_factor)
        # A last step cut short says little about the next one: the proposal it was cut from still stands.
        dt = torch.where(leg.last & accept, torch.maximum(now.dt, proposed), proposed)
        t, memory = torch.where(accept, leg.end, now.t), now.memory
        if self._remembers:
            memory = torch.where(accept, e, memory[0]), torch.where(accept, *memory)
        return accept, LoopState(t, self._afloat(dt), memory, now.goal), e

    @property
    def _remembers(self) -> bool:
        return self.controller.pcoeff != 0.0 or self.controller.dcoeff != 0.0

    def _ratio(self, e: Tensor, accept: Tensor, memory: tuple[Tensor, Tensor]) -> Tensor:
        """The ratio of two steps, before safety; after a refused one it is purely integral."""
        pid, q = self.controller, exponent(self.solver)
        p, i, d = pid.pcoeff, pid.icoeff, pid.dcoeff
        refused = e ** (-1.0 / q)
        if (p, i, d) == (0.0, 1.0, 0.0):
            return refused
        accepted = e ** (-(i + p + d) / q)
        if self._remembers:
            accepted = accepted * memory[0] ** ((p + 2.0 * d) / q) * memory[1] ** (-d / q)
        return torch.where(accept, accepted, refused)

    def _afloat(self, dt: Tensor) -> Tensor:
        """The step, or zero where it has underflowed: a march of such steps has failed."""
        return torch.threshold(dt, math.nextafter(shortest(self.t0, self.t1), 0.0), 0.0)
