"""Implicit Euler where the field is linear and symmetric: conjugate gradients, which keep four vectors."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from beltrami.errors import SolverError
from beltrami.scheme.base import Solver, State, Step, VectorField
from beltrami.scheme.interpolant import LinearVectorField


@dataclass(frozen=True, eq=False)
class SymmetricEuler(Solver):
    r"""Implicit Euler for a linear field :math:`f(y) = L y`, by conjugate gradients (Hestenes & Stiefel, 1952).

    .. math:: (I - h L)\, y_1 = y_0

    L must have no positive eigenvalue and be symmetric under :math:`\langle p, q \rangle = \sum_i \mu_i p_i q_i`,
    which a diffusion is whose weights are symmetric but for the factor :math:`1 / \mu_i`. Anything else is a matter
    for ``ImplicitEuler``, and so are gradients.

    Args:
        mass: mu, positive, of a shape that broadcasts to that of the state.
        rtol: stop where the residual is that small beside y0, in the norm of mu.
        max_iterations: before giving up.
    """

    mass: Tensor
    rtol: float
    max_iterations: int = 1000

    order = 1
    synchronises: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.rtol > 0.0 or self.max_iterations < 1:
            raise ValueError(
                "SymmetricEuler needs a positive `rtol` and at least one of `max_iterations`; "
                f"got {self.rtol} and {self.max_iterations}."
            )

    def init(self, f: VectorField, t0: float, y0: Tensor) -> State:
        return ()

    def step(self, f: VectorField, t0: float, t1: float, y0: Tensor, state: State) -> Step:
        if torch.is_grad_enabled() and y0.requires_grad:
            raise RuntimeError("SymmetricEuler has no derivative: use ImplicitEuler, or solve under `torch.no_grad()`.")
        with torch.no_grad():
            y1 = self._solve(f, t1, t1 - t0, y0)
        return Step(y1, None, (), LinearVectorField(t0, t1, y0, y1))

    def _solve(self, f: VectorField, t: float, dt: float, b: Tensor) -> Tensor:
        y = b
        r = dt * f(t, b)  # the residual of the first guess, y0 itself
        p = r
        size, target = self._dot(r, r), self.rtol**2 * self._dot(b, b)
        for iteration in range(self.max_iterations + 1):
            if size <= target:
                return y
            if iteration == self.max_iterations or not math.isfinite(size):
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
