"""Steps along which an energy never grows."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.func import debug_unwrap

from beltrami.scheme.adjoint import Continuous, Direct
from beltrami.scheme.base import Controller, Solution, Solver, Stats, Step, Time, TimeStepping, VectorField, Verdict
from beltrami.scheme.potential import Potential
from beltrami.scheme.solve import Scheme

SHORTER = 0.5  # the next try after a step that raised the energy
ROUND_OFF = 8.0  # units in the last place of a state within which a step has changed nothing


@dataclass(frozen=True)
class EnergyController(Controller):
    r"""``controller``, which moreover takes no step along which the energy grows: backtracking.

    .. math:: E(y_1) \le E(y_0) + \epsilon |E(y(t_0))|

    with epsilon the machine's. A step that fails is tried again at half the length; on a gradient flow one that is
    short enough passes. A step that changes nothing but the last places of the state always passes. Runs of a batch
    (``torch.func.vmap``) share their steps, and all must pass, but for those whose energy was no number before.

    Args:
        controller: proposes the lengths: ``ConstantSteps`` to go as far as one may, ``PID`` to be accurate besides.
        energy: E of a state, a scalar.
    """

    controller: Controller
    energy: Callable[[Tensor], Tensor]

    @property
    def varies(self) -> bool:
        return True

    @property
    def estimates(self) -> bool:
        return self.controller.estimates

    def start(self, f: VectorField, t0: float, t1: float, y0: Tensor, solver: Solver) -> float:
        return self.controller.start(f, t0, t1, y0, solver)

    def judge(self, step: Step, dt: float, y0: Tensor, solver: Solver, memory: tuple[float, ...]) -> Verdict:
        after = self._look(step.y1)
        runs = len(after)  # memory: each run's energy at the start of the march, its last one, then the controller's
        first, before, inner = memory[:runs], memory[runs : 2 * runs], memory[2 * runs :]
        if not memory:
            first = before = self._look(y0)
        slack, each = torch.finfo(y0.dtype).eps, zip(first, before, after, strict=True)
        falls = all(e1 <= e0 + slack * abs(e) or (runs > 1 and math.isnan(e0)) for e, e0, e1 in each)
        if not falls and not _unmoved(y0, step.y1):
            return Verdict(False, SHORTER * dt, (*first, *before, *inner))
        accept, proposed, inner = self.controller.judge(step, dt, y0, solver, inner)
        return Verdict(accept, proposed, (*first, *(after if accept else before), *inner))

    def resume(self, dt: Time) -> "EnergyController":
        return replace(self, controller=self.controller.resume(dt))

    @torch.no_grad()
    def _look(self, y: Tensor) -> tuple[float, ...]:
        """Waits for the device; of a batch every run's energy."""
        return tuple(debug_unwrap(self.energy(y)).flatten().tolist())


@dataclass(frozen=True)
class EnergyDecreasing(TimeStepping):
    """A scheme that keeps the promise of its field: it takes no step along which the field's energy grows.

    States between steps are interpolated, and of these nothing is promised. The way back of the continuous adjoint has
    no energy to go down and takes the scheme's own steps.

    Args:
        scheme: the steps to begin with, such as ``Scheme(Euler(), ConstantSteps(0.5))``.
    """

    scheme: Scheme

    def run(self, f: VectorField, y0: Tensor, ts: tuple[float, ...], params: tuple[Tensor, ...]) -> Solution:
        if not isinstance(f, Potential):
            raise ValueError(
                f"Descent steps fields that know their energy, and {type(f).__name__} does not: use PolyakovFlow and "
                "leave out running costs, or leave out Descent."
            )
        adjoint = self.scheme.adjoint
        if isinstance(adjoint, Continuous):
            adjoint = Continuous(adjoint.scheme or replace(self.scheme, adjoint=Direct()))
        downhill = EnergyController(self.scheme.controller, f.energy)
        return replace(self.scheme, controller=downhill, adjoint=adjoint).run(f, y0, ts, params)

    def resume(self, stats: Stats) -> "EnergyDecreasing":
        return replace(self, scheme=self.scheme.resume(stats))


@torch.no_grad()
def _unmoved(y0: Tensor, y1: Tensor) -> bool:
    apart, size = torch.linalg.vector_norm(y1 - y0), torch.linalg.vector_norm(y0)
    return bool(debug_unwrap(apart <= ROUND_OFF * torch.finfo(y0.dtype).eps * size).all())
