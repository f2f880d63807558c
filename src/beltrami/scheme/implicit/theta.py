"""Implicit methods, for stiff problems."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from beltrami.scheme.base import Solver, State, Step, VectorField, refuse_second_derivative
from beltrami.scheme.implicit.newton import Newton
from beltrami.scheme.interpolant import LinearVectorField


class ThetaMethod(Solver):
    r"""One nonlinear system to a step.

    .. math:: y_1 = y_0 + (1 - \theta) h f(t_0, y_0) + \theta h f(t_1, y_1)

    A step is differentiated by the implicit function theorem, with one transposed linear system: no iteration of
    Newton's method leaves a graph. The local error is estimated by h/2 (f_0 - f_1), which is that of implicit Euler
    and more than that of Crank-Nicolson, smoothed by (I - theta h J)^-1 lest fast components dominate it.
    """

    error_order: ClassVar[int | None] = 1
    synchronises: ClassVar[bool] = True
    theta: ClassVar[float]

    @property
    @abstractmethod
    def newton(self) -> Newton:
        """How the system is solved."""

    def init(self, f: VectorField, t0: float, y0: Tensor) -> State:
        return ()

    def step(self, f: VectorField, t0: float, t1: float, y0: Tensor, state: State) -> Step:
        newton, dt, c = self.newton, t1 - t0, self.theta * (t1 - t0)
        slope0: Callable[[], Tensor] = partial(f, t0, y0)
        b = y0
        if self.theta < 1.0:
            f0 = f(t0, y0)
            b, slope0 = torch.add(y0, f0, alpha=dt - c), lambda: f0
        y1 = newton.root(f, t1, b, y0, c=c)
        if torch.is_grad_enabled():
            y1 = _Root.apply(partial(newton.transposed, f, t1, c=c), y1, torch.add(b, f(t1, y1), alpha=c))  # type: ignore[no-untyped-call]

        def error() -> Tensor:
            with torch.no_grad():
                change = 0.5 * dt * (slope0() - (y1 - b) / c)
                return newton.smooth(f, t1, y1, change, c=c)

        return Step(y1, error, (), LinearVectorField(t0, t1, y0, y1))


@dataclass(frozen=True)
class ImplicitEuler(ThetaMethod):
    """y1 = y0 + dt f(t1, y1): first order; damps fast components at any step length (L-stable).

    Args:
        rtol, atol: when Newton's method stops: |residual| <= rtol |y| + atol sqrt(numel). With PID, choose them well
            below its own.
        max_iterations: of Newton's method.
        restart: Krylov vectors that GMRES keeps.
    """

    rtol: float
    atol: float
    max_iterations: int = 20
    restart: int = 30

    order = 1
    theta = 1.0

    def __post_init__(self) -> None:
        _check(self.newton, self)

    @property
    def newton(self) -> Newton:
        return Newton(self.rtol, self.atol, self.max_iterations, self.restart)


@dataclass(frozen=True)
class CrankNicolson(ThetaMethod):
    """y1 = y0 + dt/2 (f(t0, y0) + f(t1, y1)): second order; stable at any step length, yet fast components ring on
    (A-stable, not L-stable). Arguments as for ``ImplicitEuler``."""

    rtol: float
    atol: float
    max_iterations: int = 20
    restart: int = 30

    order = 2
    theta = 0.5

    def __post_init__(self) -> None:
        _check(self.newton, self)

    @property
    def newton(self) -> Newton:
        return Newton(self.rtol, self.atol, self.max_iterations, self.restart)


class _Root(torch.autograd.Function):
    """``y``, the root of y = b + c f(t, y), with the derivative that the equation implies.

    ``value`` is the right-hand side at the root, by way of which gradients go on to b and to whatever f holds.
    """

    @staticmethod
    def forward(ctx: Any, transposed: Callable[[Tensor, Tensor], Tensor], y: Tensor, value: Tensor) -> Tensor:
        ctx.transposed = transposed
        ctx.save_for_backward(y)
        return y.view_as(y)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
        refuse_second_derivative("an implicit step")
        (y,) = ctx.saved_tensors
        return None, None, ctx.transposed(y, gradient)


def _check(newton: Newton, solver: Solver) -> None:
    if newton.rtol < 0.0 or newton.atol < 0.0 or not newton.rtol + newton.atol > 0.0:
        raise ValueError(f"{solver!r} needs non-negative `rtol` and `atol`, not both zero.")
    if newton.max_iterations < 1 or newton.restart < 1:
        raise ValueError(f"{solver!r} needs `max_iterations` and `restart` of at least one.")
