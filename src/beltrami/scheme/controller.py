"""Step-size controllers: constant steps, and PID control of the estimated error."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.func import debug_unwrap

from beltrami.arguments import Finite, checked
from beltrami.scheme.base import Controller, Decision, Solver, Step, Time, VectorField, check_tolerances
from beltrami.scheme.interpolant import add_scaled
from beltrami.scheme.norm import Norm, WholeNorm

SAFETY = 0.9  # s
MIN_FACTOR, MAX_FACTOR = 0.2, 10.0  # bounds of the ratio of two steps
MOST = 2.0**62  # larger counts of steps are this one
SMALLEST_ERROR = 1e-10  # smaller errors count as this one, so that their inverse powers stay finite


@checked
@dataclass(frozen=True)
class ConstantSteps(Controller):
    """ceil((t1 - t0) / dt) steps of equal length, none longer than ``dt``."""

    dt: float
    adaptive = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.dt) and self.dt > 0.0):
            raise ValueError(f"ConstantSteps needs a positive `dt`; got {self.dt}.")

    def first_step(self, f: VectorField, t0: float, t1: float, y0: Tensor, solver: Solver) -> float:
        return (t1 - t0) / self.least_steps(t0, t1)

    def least_steps(self, t0: float, t1: float) -> int:
        ratio = min((t1 - t0) / self.dt, MOST)
        return max(1, math.ceil(ratio * (1.0 - 1e-9)))  # 1 / 0.1 must be ten steps, not eleven

    def decide(self, step: Step, dt: float, y0: Tensor, solver: Solver, memory: tuple[float, ...]) -> Decision:
        return Decision(True, dt)


@checked
@dataclass(frozen=True)
class PID(Controller):
    r"""Steps whose estimated error just meets the tolerances.

    .. math:: e = \mathrm{rms} \frac{\mathrm{error}}{\mathrm{atol} + \mathrm{rtol} \max(|y_0|, |y_1|)}, \qquad
              \frac{dt_{n+1}}{dt_n} = s \, e_n^{-(I+P+D)/(q+1)} e_{n-1}^{(P+2D)/(q+1)} e_{n-2}^{-D/(q+1)}

    A step is accepted if e <= 1; q is the order of the solver's error estimate. The default is purely integral; for
    mildly stiff problems ``pcoeff=0.4, icoeff=0.3`` gives smoother steps and fewer rejections. ``first`` is the length
    of the first step, for a batch a tensor with one length a run; by default that of Hairer, Nørsett & Wanner (1993),
    II.4, which costs two evaluations. ``norm`` computes the root mean square.
    """

    rtol: float
    atol: float
    pcoeff: Finite = 0.0
    icoeff: Finite = 1.0
    dcoeff: Finite = 0.0
    first: Time | None = None
    norm: Norm = field(default=WholeNorm(), repr=False)
    adaptive = True

    def __post_init__(self) -> None:
        check_tolerances(self, self.rtol, self.atol)
        if not (self.first is None or isinstance(self.first, Tensor) or 0.0 < self.first < math.inf):
            raise ValueError(f"PID needs a positive `first` step, or None to estimate it; got {self.first}.")

    def first_step(self, f: VectorField, t0: float, t1: float, y0: Tensor, solver: Solver) -> float:
        self._check_resolution(y0)
        if self.first is not None:
            return float(self.first)
        # Runs of a batch that share their steps take the shortest.
        return float(self.estimate_first(f, t0, t1, y0, solver, read=lambda dt: float(debug_unwrap(dt).min().item())))

    @torch.no_grad()
    def _check_resolution(self, y0: Tensor) -> None:
        """Refuse tolerances below the round-off of the state, which no step meets; synchronises if ``rtol`` is."""
        eps = torch.finfo(y0.dtype).eps
        if self.rtol >= eps:
            return
        if float(debug_unwrap(self.norm.rms(y0 / (self.atol + self.rtol * y0.abs()))).max()) > 1.0 / eps:
            size = float(debug_unwrap(self.norm.rms(y0)).max())
            raise ValueError(
                f"rtol={self.rtol:g} and atol={self.atol:g} are less than {y0.dtype} resolves for values of size "
                f"{size:.2g}: use `rtol` of at least {2 * eps:.0e} or `atol` of at least {2 * eps * size:.0e}."
            )

    @torch.no_grad()
    def estimate_first(
        self, f: VectorField, t0: float, t1: float, y0: Tensor, solver: Solver, *, read: Callable[[Tensor], Time]
    ) -> Time:
        """Return the first step of Hairer, Nørsett & Wanner; ``read`` may turn lengths into floats on the host."""
        scale = self.atol + self.rtol * y0.abs()
        f0 = f(t0, y0)
        d0, d1 = self.norm.rms(y0 / scale), self.norm.rms(f0 / scale)
        usual = (d0 > 1e-5) & (d1 > 1e-5) & (d1 < math.inf)
        h0 = torch.where(usual, 0.01 * d0 / d1, torch.full_like(d0, 1e-6)).clamp(max=t1 - t0)
        trial = read(h0)
        f1 = f(t0 + trial, add_scaled(y0, f0, trial))
        largest = torch.fmax(d1, self.norm.rms((f1 - f0) / scale) / h0)
        power = (0.01 / largest) ** (1.0 / error_exponent(solver))
        h1 = torch.where(largest <= 1e-15, (1e-3 * h0).clamp(min=1e-6), power)
        dt = torch.fmin(100.0 * h0, h1).clamp(max=t1 - t0)  # fmin ignores the NaN of a field that is not finite
        return read(torch.where(dt > 0.0, dt, h0))

    @torch.no_grad()
    def scaled_error(self, step: Step, y0: Tensor) -> Tensor:
        """Return the error estimate in units of the tolerance; e is its root mean square."""
        assert step.error is not None, "Scheme admits no solver without an error estimate"
        scale = torch.maximum(y0.abs(), step.y1.abs()).mul_(self.rtol).add_(self.atol)
        return step.error() / scale

    def decide(self, step: Step, dt: float, y0: Tensor, solver: Solver, memory: tuple[float, ...]) -> Decision:
        norm = self.norm(self.scaled_error(step, y0), 2.0)
        e = float(debug_unwrap(norm).max().item()) / math.sqrt(
            self.norm.count(y0)
        )  # runs that share steps: the largest error
        e = max(e, SMALLEST_ERROR) if math.isfinite(e) else math.inf
        accept = e <= 1.0
        factor = self.step_factor((e, *memory), accept, error_exponent(solver))
        return Decision(accept, dt * factor, (e, *memory[:1]) if accept else memory)

    def step_factor(self, errors: Sequence[Any], accept: Any, order: float) -> Any:
        """Return dt_{n+1} / dt_n for the ``errors`` e_n, e_{n-1}, ..., as far as known; ``order`` is q + 1.

        After a rejected step the control is purely integral: s e_n^{-1/(q+1)}. For floats with a bool ``accept``, and
        for tensors, which it does not read; there the root is taken of each factor, which needs fewer operations.
        """
        p, i, d = self.pcoeff, self.icoeff, self.dcoeff
        exponents = -(i + p + d), p + 2.0 * d, -d
        e = errors[0]
        if isinstance(e, Tensor):
            ratio = e ** (-1.0 / order)
            if exponents != (-1.0, 0.0, 0.0):
                ratio = torch.where(accept, _powers(errors, [x / order for x in exponents]), ratio)
            return (SAFETY * ratio).clamp(MIN_FACTOR, MAX_FACTOR)
        ratio = _powers(errors, exponents) ** (1.0 / order) if accept else e ** (-1.0 / order)
        return min(max(SAFETY * ratio, MIN_FACTOR), MAX_FACTOR)

    def resume(self, dt: Time) -> "PID":
        return replace(self, first=dt)


@dataclass(frozen=True)
class PrefixController(Controller):
    """``controller``, applied to the first ``count`` values of a flat state. For integrals carried along with an
    equation that does not depend on them; see Kidger, Chen & Lyons, "Hey, that's not an ODE" (ICML 2021)."""

    controller: Controller
    count: int

    @property
    def adaptive(self) -> bool:
        return self.controller.adaptive

    def first_step(self, f: VectorField, t0: float, t1: float, y0: Tensor, solver: Solver) -> float:
        return self.controller.first_step(f, t0, t1, y0, solver)

    def least_steps(self, t0: float, t1: float) -> int:
        return self.controller.least_steps(t0, t1)

    def decide(self, step: Step, dt: float, y0: Tensor, solver: Solver, memory: tuple[float, ...]) -> Decision:
        error = step.error
        prefix = step._replace(y1=step.y1[: self.count], error=None if error is None else lambda: error()[: self.count])
        return self.controller.decide(prefix, dt, y0[: self.count], solver, memory)

    def resume(self, dt: Time) -> "PrefixController":
        return replace(self, controller=self.controller.resume(dt))


def _powers(errors: Sequence[Any], exponents: Sequence[float]) -> Any:
    """Return the product of errors[k] ** exponents[k]."""
    product = errors[0] ** exponents[0]
    for e, exponent in zip(errors[1:], exponents[1:], strict=False):
        if exponent != 0.0:
            product = product * e**exponent
    return product


def error_exponent(solver: Solver) -> float:
    """Return q + 1, the power of dt by which the error estimate falls."""
    assert solver.error_order is not None, "Scheme admits no solver without an error estimate"
    return solver.error_order + 1.0
