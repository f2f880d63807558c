"""Controllers: how long the next step is, and whether the last one was good enough."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.func import debug_unwrap

from beltrami.scheme.base import Controller, Solver, Step, Time, VectorField, Verdict
from beltrami.scheme.interpolant import added

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

    def resume(self, dt: Time) -> "ConstantSteps":
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
            evaluations. To go on where a solve ended, give its ``stats.last_dt``, or use ``resume``; that of a batch
            is a tensor, and every run goes on with its own.
    """

    rtol: float
    atol: float
    pcoeff: float = 0.0
    icoeff: float = 1.0
    dcoeff: float = 0.0
    safety: float = 0.9
    min_factor: float = 0.2
    max_factor: float = 10.0
    first: Time | None = None

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
        if not (self.first is None or isinstance(self.first, Tensor) or self.first > 0.0):
            raise ValueError(f"PID needs a positive `first` step, or None to have it found; got {self.first}.")

    @property
    def varies(self) -> bool:
        return True

    def start(self, f: VectorField, t0: float, t1: float, y0: Tensor, solver: Solver) -> float:
        if self.first is not None:
            return float(self.first)
        return float(self.opening(f, t0, t1, y0, solver, look=_shortest))

    @torch.no_grad()
    def opening(
        self, f: VectorField, t0: float, t1: float, y0: Tensor, solver: Solver, *, look: Callable[[Tensor], Time]
    ) -> Time:
        """The first step of Hairer, Nørsett & Wanner; ``look`` makes numbers of tensors, or leaves them as they are."""
        scale = self.atol + self.rtol * y0.abs()
        f0 = f(t0, y0)
        d0, d1 = rms(y0 / scale), rms(f0 / scale)
        usual = (d0 > 1e-5) & (d1 > 1e-5) & (d1 < math.inf)
        h0 = torch.where(usual, 0.01 * d0 / d1, torch.full_like(d0, 1e-6)).clamp(max=t1 - t0)
        trial = look(h0)
        f1 = f(t0 + trial, added(y0, f0, trial))
        steepest = torch.fmax(d1, rms((f1 - f0) / scale) / h0)
        steady = steepest <= 1e-15
        h1 = torch.where(steady, (1e-3 * h0).clamp(min=1e-6), (0.01 / steepest) ** (1.0 / exponent(solver)))
        dt = torch.fmin(100.0 * h0, h1).clamp(max=t1 - t0)  # also where the field is not finite, as fmin passes over it
        return look(torch.where(dt > 0.0, dt, h0))

    @torch.no_grad()
    def scaled(self, step: Step, y0: Tensor) -> Tensor:
        """The error of a step in units of what is allowed; e is its root mean square."""
        assert step.error is not None, "Scheme admits no solver without an error estimate"
        scale = torch.maximum(y0.abs(), step.y1.abs()).mul_(self.rtol).add_(self.atol)
        return step.error() / scale

    def judge(self, step: Step, dt: float, y0: Tensor, solver: Solver, memory: tuple[float, ...]) -> Verdict:
        norm = torch.linalg.vector_norm(self.scaled(step, y0))
        e = float(debug_unwrap(norm).max().item()) / math.sqrt(y0.numel())  # of runs that share steps the largest
        if not math.isfinite(e):
            return Verdict(False, dt * self.min_factor, memory)
        e = max(e, SMALLEST_ERROR)
        if e > 1.0:
            factor = self.safety * e ** (-1.0 / exponent(solver))
            return Verdict(False, dt * max(factor, self.min_factor), memory)
        factor = self.safety * self._ratio(e, memory) ** (1.0 / exponent(solver))
        return Verdict(True, dt * min(max(factor, self.min_factor), self.max_factor), (e, *memory[:1]))

    def resume(self, dt: Time) -> "PID":
        return replace(self, first=dt)

    def _ratio(self, e: float, memory: tuple[float, ...]) -> float:
        last, one_before = (*memory, 1.0, 1.0)[:2]
        p, i, d = self.pcoeff, self.icoeff, self.dcoeff
        return float(e ** -(i + p + d) * last ** (p + 2.0 * d) * one_before**-d)


def rms(x: Tensor) -> Tensor:
    """Root mean square, a double on the device."""
    norm: Tensor = torch.linalg.vector_norm(x)
    return norm.double() / math.sqrt(x.numel())


def _shortest(dt: Tensor) -> float:
    """Waits for the device; of runs that share their steps the shortest."""
    return float(debug_unwrap(dt).min().item())


def exponent(solver: Solver) -> float:
    """q + 1."""
    assert solver.error_order is not None, "Scheme admits no solver without an error estimate"
    return solver.error_order + 1.0
