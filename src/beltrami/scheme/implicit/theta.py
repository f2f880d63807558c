"""Implicit methods, for stiff problems: the theta methods, and implicit Euler by conjugate gradients."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from beltrami.arguments import checked
from beltrami.errors import SolverError
from beltrami.scheme.base import Solver, State, Step, VectorField, check_tolerances, refuse_second_derivative
from beltrami.scheme.implicit.krylov import Linearisation, gmres, norm, shifted
from beltrami.scheme.interpolant import linear_interpolant

NEWTON_ITERATIONS = 20  # the most for one step
CONJUGATE_GRADIENTS = 1000  # the most iterations for one step


@dataclass(frozen=True)
class ThetaMethod(Solver):
    r"""One nonlinear system a step, solved by Newton's method.

    .. math:: y_1 = y_0 + (1 - \theta) h f(t_0, y_0) + \theta h f(t_1, y_1)

    A step is differentiated by the implicit function theorem, with one transposed linear system; Newton's iterations
    leave no graph. The local error is estimated by h/2 (f_0 - f_1), which is that of implicit Euler and more than that
    of Crank-Nicolson, smoothed by (I - theta h J)^-1 so that fast components do not dominate it.

    Newton's method stops at |residual| <= rtol |y| + atol sqrt(numel). With PID, choose these tolerances well below the
    controller's.
    """

    rtol: float
    atol: float

    error_order: ClassVar[int | None] = 1
    synchronises: ClassVar[bool] = True
    theta: ClassVar[float]

    def __post_init__(self) -> None:
        check_tolerances(self, self.rtol, self.atol)

    def step(self, f: VectorField, t0: float, t1: float, y0: Tensor, state: State) -> Step:
        dt, c = t1 - t0, self.theta * (t1 - t0)
        slope0: Callable[[], Tensor] = partial(f, t0, y0)
        b = y0
        if self.theta < 1.0:
            f0 = f(t0, y0)
            b, slope0 = torch.add(y0, f0, alpha=dt - c), lambda: f0
        y1 = self._newton(f, t1, b, y0, c)
        if torch.is_grad_enabled():
            y1 = _Root.apply(partial(self._transposed, f, t1, c), y1, torch.add(b, f(t1, y1), alpha=c))  # type: ignore[no-untyped-call]

        def error() -> Tensor:
            with torch.no_grad():
                change = 0.5 * dt * (slope0() - (y1 - b) / c)
                return gmres(shifted(Linearisation(f, t1, y1).jvp, c), change, rtol=0.01).x

        return Step(y1, error, (), linear_interpolant(t0, t1, y0, y1))

    def _newton(self, f: VectorField, t: float, b: Tensor, guess: Tensor, c: float) -> Tensor:
        """Solve y = b + c f(t, y) near ``guess``, by GMRES for the linear systems I - c J; the result has no graph."""
        y = guess.detach()
        for iteration in range(NEWTON_ITERATIONS + 1):
            local = Linearisation(f, t, y)
            excess = torch.add(b.detach(), local.value, alpha=c) - y
            residual, target = norm(excess), self.rtol * norm(y) + self.atol * math.sqrt(y.numel())
            if residual <= target:
                return y
            if iteration == NEWTON_ITERATIONS or not math.isfinite(residual):
                break
            # Only as accurate as needed for the residual to fall a thousandfold, or to the target.
            accuracy = min(0.1, max(1e-3, 0.5 * target / residual))
            y = y + gmres(shifted(local.jvp, c), excess, rtol=accuracy).x
        raise SolverError(
            f"Newton's method did not converge for the step to t={t:.6g}: after {iteration} iterations the residual is "
            f"{residual:.3g}, above {target:.3g}. Try a smaller step, or looser `rtol` and `atol` of the solver."
        )

    def _transposed(self, f: VectorField, t: float, c: float, y: Tensor, v: Tensor) -> Tensor:
        """Return (I - c J)^-T v, the vector-Jacobian product of the root with respect to b."""
        rtol = max(self.rtol, 10.0 * torch.finfo(v.dtype).eps)
        solved = gmres(shifted(Linearisation(f, t, y).vjp, c), v, rtol=rtol)
        if not solved.converged:
            raise SolverError(
                f"GMRES did not converge for the gradient of the step to t={t:.6g}: the residual is "
                f"{solved.residual:.3g} of {float(v.norm()):.3g}. Try a smaller step, or a looser `rtol` of the solver."
            )
        return solved.x


@checked
@dataclass(frozen=True)
class ImplicitEuler(ThetaMethod):
    """y1 = y0 + dt f(t1, y1): first order; damps fast components at any step length (L-stable)."""

    order = 1
    theta = 1.0


@checked
@dataclass(frozen=True)
class CrankNicolson(ThetaMethod):
    """y1 = y0 + dt/2 (f(t0, y0) + f(t1, y1)): second order; A-stable, not L-stable: fast components oscillate."""

    order = 2
    theta = 0.5


class _Root(torch.autograd.Function):
    """The root y of y = b + c f(t, y), with the derivative of the implicit function theorem. Gradients flow through
    ``value``, the right-hand side at the root, to b and to the tensors inside f."""

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


@checked
@dataclass(frozen=True, eq=False)
class SymmetricEuler(Solver):
    r"""Implicit Euler for a linear field :math:`f(y) = L y`, by conjugate gradients (Hestenes & Stiefel, 1952).

    .. math:: (I - h L)\, y_1 = y_0

    L must have no positive eigenvalue and be symmetric under :math:`\langle p, q \rangle = \sum_i \mu_i p_i q_i`, as
    for a diffusion whose weights are symmetric up to the factor :math:`1 / \mu_i`. Keeps four vectors and has no
    gradient; for other fields, and for gradients, use ``ImplicitEuler``. ``rtol`` is that of the residual relative to
    y0, in the norm of mu; ``mass``, mu, is positive, of a shape that broadcasts to that of the state.
    """

    mass: Tensor = field(repr=False)
    rtol: float

    order = 1
    synchronises: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.rtol > 0.0:
            raise ValueError(f"SymmetricEuler needs a positive `rtol`; got {self.rtol}.")

    def step(self, f: VectorField, t0: float, t1: float, y0: Tensor, state: State) -> Step:
        if torch.is_grad_enabled() and y0.requires_grad:
            raise RuntimeError("SymmetricEuler has no derivative: use ImplicitEuler, or solve under `torch.no_grad()`.")
        with torch.no_grad():
            y1 = self._solve(f, t1, t1 - t0, y0)
        return Step(y1, None, (), linear_interpolant(t0, t1, y0, y1))

    def _solve(self, f: VectorField, t: float, dt: float, b: Tensor) -> Tensor:
        y = b
        r = dt * f(t, b)  # the residual of the initial guess y0
        p = r
        size, target = self._dot(r, r), self.rtol**2 * self._dot(b, b)
        for iteration in range(CONJUGATE_GRADIENTS + 1):
            if size <= target:
                return y
            if iteration == CONJUGATE_GRADIENTS or not math.isfinite(size):
                break
            q = torch.sub(p, f(t, p), alpha=dt)
            length = size / self._dot(p, q)
            y, r = torch.add(y, p, alpha=length), torch.sub(r, q, alpha=length)
            before, size = size, self._dot(r, r)
            p = torch.add(r, p, alpha=size / before)
        raise SolverError(
            f"conjugate gradients did not converge for the step to t={t:.6g}: after {iteration} iterations "
            f"the residual is {math.sqrt(size):.3g}, above {math.sqrt(target):.3g}. Is the field symmetric under "
            "`mass`? Try a shorter step, or a looser `rtol`."
        )

    def _dot(self, p: Tensor, q: Tensor) -> float:
        return float((p * q * self.mass).sum())
