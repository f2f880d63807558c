"""The nonlinear system inside an implicit step."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from beltrami.errors import SolverError
from beltrami.scheme.base import VectorField
from beltrami.scheme.implicit.gmres import gmres, norm
from beltrami.scheme.implicit.linearisation import Linearisation


@dataclass(frozen=True)
class Newton:
    """Newton's method for y = b + c f(t, y), its linear systems I - c J by GMRES: no matrix is ever formed.

    Args:
        rtol, atol: stop at |b + c f - y| <= rtol |y| + atol sqrt(numel).
        max_iterations: before giving up.
        restart: Krylov vectors kept by GMRES.
    """

    rtol: float
    atol: float
    max_iterations: int
    restart: int

    def root(self, f: VectorField, t: float, b: Tensor, guess: Tensor, *, c: float) -> Tensor:
        """The solution y near ``guess``, without a graph."""
        y = guess.detach()
        for iteration in range(self.max_iterations + 1):
            local = Linearisation(f, t, y)
            excess = torch.add(b.detach(), local.value, alpha=c) - y
            residual, target = norm(excess), self.rtol * norm(y) + self.atol * math.sqrt(y.numel())
            if residual <= target:
                return y
            if iteration == self.max_iterations or not math.isfinite(residual):
                break
            # Just well enough for the residual to fall a thousandfold, or to the target.
            enough = min(0.1, max(1e-3, 0.5 * target / residual))
            y = y + gmres(_shifted(local.jvp, c), excess, rtol=enough, restart=self.restart).x
        raise SolverError(
            f"Newton's method did not converge for the step to t={t:.6g}: after {iteration} iterations the residual is "
            f"{residual:.3g}, above {target:.3g}. Try a smaller step, looser `rtol` and `atol`, or more "
            "`max_iterations` of the implicit solver."
        )

    def smooth(self, f: VectorField, t: float, y: Tensor, error: Tensor, *, c: float) -> Tensor:
        """(I - c J)^-1 error: as it is where ``c`` is short for the field, damped where it is long."""
        return gmres(_shifted(Linearisation(f, t, y).jvp, c), error, rtol=0.01, restart=self.restart).x

    def transposed(self, f: VectorField, t: float, y: Tensor, v: Tensor, *, c: float) -> Tensor:
        """(I - c J)^-T v: the derivative of the root with respect to ``b``, applied backwards to ``v``."""
        rtol = max(self.rtol, 10.0 * torch.finfo(v.dtype).eps)
        solved = gmres(_shifted(Linearisation(f, t, y).vjp, c), v, rtol=rtol, restart=self.restart)
        if not solved.converged:
            raise SolverError(
                f"GMRES did not converge for the gradient of the step to t={t:.6g}: the residual is "
                f"{solved.residual:.3g} of {norm(v):.3g}. Try a smaller step, a looser `rtol`, or a larger `restart` "
                "of the implicit solver."
            )
        return solved.x


def _shifted(product: Callable[[Tensor], Tensor], c: float) -> Callable[[Tensor], Tensor]:
    return lambda v: torch.sub(v, product(v), alpha=c)
