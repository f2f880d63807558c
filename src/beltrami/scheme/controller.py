"""Controllers: how long the next step is, and whether the last one was good enough."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.func import debug_unwrap

from beltrami.scheme.base import Controller, Solver, Step, VectorField, Verdict

SMALLEST_ERROR = 1e-10  # below this a step is as good as exact, and its inverse still a number


@dataclass(frozen=True)
class ConstantSteps(Controller):
    """ceil((t1 - t0) / dt) equal steps: none is longer than ``dt``, none shorter than the others."""

    dt: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.dt) and self.dt > 0.0):
            raise ValueError(f"ConstantSteps needs a positive `dt`; got {self.dt}.")

    @property
    def varies(self) -> bool:
        return False

    def start(self, f: VectorField, t0: float, t1: float, y0: Tensor, solver: Solver) -> float:
        ratio = (t1 - t0) / self.dt
        return (t1 - t0) / max(1, math.ceil(ratio * (1.0 - 1e-9)))  # 1 / 0.1 must be ten steps, not eleven

    def judge(self, step: Step, dt: float, y0: Tensor, solver: Solver, memory: tuple[float, ...]) -> Verdict:
        return Verdict(True, dt)

    def resume(self, dt: float) -> "ConstantSteps":
        return self


@dataclass(frozen=True)
class PID(Controller):
    r"""Steps whose estimated error just meets the tolerances.

    .. math:: e = \mathrm{rms} \frac{\mathrm{error}}{\mathrm{atol} + \mathrm{rtol} \max(|y_0|, |y_1|)}, \qquad
              \frac{dt_{n+1}}{dt_n} = s \, e_n^{-(I+P+D)/(q+1)} e_{n-1}^{(P+2D)/(q+1)} e_{n-2}^{-D/(q+1)}

    A step is accepted if e <= 1; q is the order of the solver's error estimate. The default is purely integral; for
    mildly stiff problems ``pcoeff=0.4, icoeff=0.3`` gives smoother steps and fewer rejections.

    Args:
        rtol: tolerance relative to the state.
        atol: tolerance where the state is small.
        pcoeff, icoeff, dcoeff: the exponents P, I, D.
        safety: the factor s.
        min_factor, max_factor: bounds of the ratio of two steps.
        first: length of the first step; by default that of Hairer, Nørsett & Wanner (1993), II.4, which costs two
            evaluations. To go on where a solve ended, give its ``stats.last_dt``, or use ``resume``.
    """

    rtol: float
    atol: float
    pcoeff: float = 0.0
    icoeff: float = 1.0
    dcoeff: float = 0.0
    safety: float = 0.9
    min_factor: float = 0.2
    max_factor: float = 10.0
    first: float | None = None

    def __post_init__(self) -> None:
        if self.rtol < 0.0 or self.atol < 0.0 or not self.rtol + self.atol > 0.0:
            raise ValueError(
                f"PID needs non-negative `rtol` and `atol`, not both zero; got rtol={self.rtol}, atol={self.atol}."
            )
        if not (0.0 < self.min_factor < 1.0 < self.max_factor and 0.0 < self.safety <= 1.0):
            raise ValueError(
                f"PID needs 0 < min_factor < 1 < max_factor and 0 < safety <= 1; got min_factor={self.min_factor}, "
                f"max_factor={self.max_factor}, safety={self.safety}."
            )
        if self.first is not None and not self.first > 0.0:
            raise ValueError(f"PID needs a positive `first` step, or None to have it found; got {self.first}.")

    @property
    def varies(self) -> bool:
        return True

    def start(self, f: VectorField, t0: float, t1: float, y0: Tensor, solver: Solver) -> float:
        if self.first is not None:
            return self.first
        with torch.no_grad():
            scale = self.atol + self.rtol * y0.abs()
            f0 = f(t0, y0)
            d0, d1 = rms(y0 / scale), rms(f0 / scale)
            h0 = 0.01 * d0 / d1 if d0 > 1e-5 and d1 > 1e-5 else 1e-6
            h0 = min(h0, t1 - t0)
            f1 = f(t0 + h0, torch.add(y0, f0, alpha=h0))
            d2 = rms((f1 - f0) / scale) / h0
        steepest = max(d1, d2)
        h1 = max(1e-6, 1e-3 * h0) if steepest <= 1e-15 else (0.01 / steepest) ** (1.0 / _exponent(solver))
        dt = min(100.0 * h0, h1, t1 - t0)
        return dt if dt > 0.0 else h0  # also where the field is not finite: the first step will say so

    def judge(self, step: Step, dt: float, y0: Tensor, solver: Solver, memory: tuple[float, ...]) -> Verdict:
        assert step.error is not None, "Scheme admits no solver without an error estimate"
        with torch.no_grad():
            scale = torch.maximum(y0.abs(), step.y1.abs()).mul_(self.rtol).add_(self.atol)
            e = rms(step.error() / scale)
        if not math.isfinite(e):
            return Verdict(False, dt * self.min_factor, memory)
        e = max(e, SMALLEST_ERROR)
        if e > 1.0:
            factor = self.safety * e ** (-1.0 / _exponent(solver))
            return Verdict(False, dt * max(factor, self.min_factor), memory)
        factor = self.safety * self._ratio(e, memory) ** (1.0 / _exponent(solver))
        return Verdict(True, dt * min(max(factor, self.min_factor), self.max_factor), (e, *memory[:1]))

    def resume(self, dt: float) -> "PID":
        return replace(self, first=dt)

    def _ratio(self, e: float, memory: tuple[float, ...]) -> float:
        last, one_before = (*memory, 1.0, 1.0)[:2]
        p, i, d = self.pcoeff, self.icoeff, self.dcoeff
        return float(e ** -(i + p + d) * last ** (p + 2.0 * d) * one_before**-d)


def rms(x: Tensor) -> float:
    """Root mean square. Waits for the device; under ``vmap`` the largest of the batch, so that all share one step."""
    return float(debug_unwrap(torch.linalg.vector_norm(x)).max().item()) / math.sqrt(x.numel())


def _exponent(solver: Solver) -> float:
    assert solver.error_order is not None, "Scheme admits no solver without an error estimate"
    return solver.error_order + 1.0
