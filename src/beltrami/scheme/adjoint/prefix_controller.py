"""A controller that looks at a part of the state."""

from dataclasses import dataclass, replace

from torch import Tensor

from beltrami.scheme.base import Controller, Solver, Step, Time, VectorField, Verdict


@dataclass(frozen=True)
class PrefixController(Controller):
    """``controller``, shown only the first ``count`` values of a flat state.

    For integrals carried along with an equation that does not depend on them; see Kidger, Chen & Lyons, "Hey, that's
    not an ODE" (ICML 2021).
    """

    controller: Controller
    count: int

    @property
    def varies(self) -> bool:
        return self.controller.varies

    def start(self, f: VectorField, t0: float, t1: float, y0: Tensor, solver: Solver) -> float:
        return self.controller.start(f, t0, t1, y0, solver)

    def judge(self, step: Step, dt: float, y0: Tensor, solver: Solver, memory: tuple[float, ...]) -> Verdict:
        error = step.error
        seen = step._replace(y1=step.y1[: self.count], error=None if error is None else lambda: error()[: self.count])
        return self.controller.judge(seen, dt, y0[: self.count], solver, memory)

    def resume(self, dt: Time) -> "PrefixController":
        return replace(self, controller=self.controller.resume(dt))
