"""Time stepping that never increases an energy."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.func import debug_unwrap

from beltrami.arguments import checked
from beltrami.scheme.adjoint import Continuous, Direct
from beltrami.scheme.base import Controller, Decision, Solution, Solver, Stats, Step, Time, TimeStepping, VectorField
from beltrami.scheme.time_stepping import Scheme
from beltrami.scheme.vector_field import Potential

BACKTRACKING = 0.5  # ratio of the next step to one that increased the energy
ROUND_OFF = 8.0  # a relative change of the state by so many machine epsilons counts as none


@checked
@dataclass(frozen=True)
class EnergyController(Controller):
    r"""``controller`` with backtracking: it also rejects steps that increase the energy.

    .. math:: E(y_1) \le E(y_0) + \epsilon |E(y(t_0))|

    with the machine epsilon. A rejected step is tried again at half the length; on a gradient flow a short enough step
    passes. A step that changes the state by round-off only always passes. Runs of a batch (``torch.func.vmap``) share
    their steps, and all must pass, except runs whose energy was NaN before. ``controller`` proposes the lengths:
    ``ConstantSteps`` for the longest steps allowed, ``PID`` for accuracy as well.
    """

    controller: Controller
    energy: Callable[[Tensor], Tensor]
    adaptive = True

    @property
    def needs_error(self) -> bool:
        return self.controller.needs_error

    def first_step(self, f: VectorField, t0: float, t1: float, y0: Tensor, solver: Solver) -> float:
        return self.controller.first_step(f, t0, t1, y0, solver)

    def least_steps(self, t0: float, t1: float) -> int:
        return self.controller.least_steps(t0, t1)

    def decide(self, step: Step, dt: float, y0: Tensor, solver: Solver, memory: tuple[float, ...]) -> Decision:
        after = self._energies(step.y1)
        runs = len(after)
        # The memory: every run's energy at t0 of the solve, its last energy, then the controller's memory.
        first, before, inner = memory[:runs], memory[runs : 2 * runs], memory[2 * runs :]
        if not memory:
            first = before = self._energies(y0)
        eps, each = torch.finfo(y0.dtype).eps, zip(first, before, after, strict=True)
        falls = all(e1 <= e0 + eps * abs(e) or (runs > 1 and math.isnan(e0)) for e, e0, e1 in each)
        if not falls and not _unchanged(y0, step.y1):
            return Decision(False, BACKTRACKING * dt, (*first, *before, *inner))
        accept, proposed, inner = self.controller.decide(step, dt, y0, solver, inner)
        return Decision(accept, proposed, (*first, *(after if accept else before), *inner))

    def resume(self, dt: Time) -> "EnergyController":
        return replace(self, controller=self.controller.resume(dt))

    @torch.no_grad()
    def _energies(self, y: Tensor) -> tuple[float, ...]:
        """Return the energy of every run; synchronises with the device."""
        return tuple(debug_unwrap(self.energy(y)).flatten().tolist())


@checked
@dataclass(frozen=True)
class EnergyDecreasing(TimeStepping):
    """A scheme whose steps, proposed by ``scheme``, never increase the energy of a ``Potential``.

    Interpolated states between steps have no such guarantee. The backward solve of ``Continuous`` has no energy and
    uses the scheme as it is.
    """

    scheme: Scheme

    def check_times(self, ts: tuple[float, ...]) -> None:
        self.scheme.check_times(ts)

    def run(self, f: VectorField, y0: Tensor, ts: tuple[float, ...], params: tuple[Tensor, ...]) -> Solution:
        if not isinstance(f, Potential):
            raise ValueError(
                f"EnergyDecreasing needs a field with an energy, and {type(f).__name__} has none: use PolyakovFlow "
                "without running costs, or leave out EnergyDecreasing."
            )
        adjoint = self.scheme.adjoint
        if isinstance(adjoint, Continuous):
            adjoint = Continuous(adjoint.scheme or replace(self.scheme, adjoint=Direct()))
        controller = EnergyController(self.scheme.controller, f.energy)
        return replace(self.scheme, controller=controller, adjoint=adjoint).run(f, y0, ts, params)

    def resume(self, stats: Stats) -> "EnergyDecreasing":
        return replace(self, scheme=self.scheme.resume(stats))


@torch.no_grad()
def _unchanged(y0: Tensor, y1: Tensor) -> bool:
    change, size = torch.linalg.vector_norm(y1 - y0), torch.linalg.vector_norm(y0)
    return bool(debug_unwrap(change <= ROUND_OFF * torch.finfo(y0.dtype).eps * size).all())
