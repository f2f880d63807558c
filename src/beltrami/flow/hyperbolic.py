"""The Beltrami flow of positions in the Poincaré ball."""

import torch
from torch import Tensor

from beltrami.arguments import checked
from beltrami.diffusivity import Diffusivity
from beltrami.flow.base import Flow, FunctionField, Rate, Source, present, rate_and_source
from beltrami.geometry import PoincareBall
from beltrami.graph import Edges, aggregate, collect, spread
from beltrami.joint import Joint

FLAT = 1e-4  # squared arguments below which x / tanh(x) and cosh(x)^2 are computed by Taylor polynomials


@checked
class HyperbolicFlow(Flow):
    r"""The graph Beltrami flow with positions in hyperbolic space: logarithms replace differences.

    .. math:: \frac{\partial p_i}{\partial t} = \alpha \sum_j a(z_i, z_j) \log_{p_i}(p_j), \qquad
        \frac{\partial x_i}{\partial t} = \alpha \sum_j a(z_i, z_j) (x_j - x_i)

    Each point moves towards its neighbours along geodesics, so that the convex hull of the points never grows. The
    state holds not p but its logarithm at the origin, :math:`u = \log_0 p`, and the equation becomes

    .. math:: \frac{\partial u}{\partial t} = \cosh^2(r)\, v_\parallel + \frac{r}{\tanh r} v_\perp, \qquad
        r = \sqrt c\, \|u\|,

    with v the velocity of p, split into its parts parallel and orthogonal to u. No step of any scheme can leave the
    ball, but far out (hyperbolic distances above ten) the equation is stiff and needs short steps. The weights a should
    sum to one over rows; ``rate`` and ``source`` are as for :class:`BeltramiFlow`.
    """

    diffusivity: Diffusivity

    def __init__(
        self,
        diffusivity: Diffusivity,
        joint: Joint,
        *,
        ball: PoincareBall | None = None,
        rate: Rate | None = None,
        source: Source | None = None,
    ) -> None:
        super().__init__(diffusivity)
        if joint.pos == 0:
            raise ValueError("HyperbolicFlow needs positions, and `joint` has none: use `BeltramiFlow`.")
        self.joint, self.rate, self.source = joint, rate, source
        self.ball = PoincareBall() if ball is None else ball

    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> FunctionField:
        alpha, source = rate_and_source(self.rate, self.source, z if start is None else start)
        anchored = self.diffusivity.normalise.connected(edges)

        def dz_dt(t: float, z: Tensor) -> Tensor:
            u, x = self.joint.split(z)
            a, p = self.diffusivity(z, edges), self.ball.exp_origin(u)
            dx = aggregate(a, x, edges) - anchored.to(z.dtype)[:, None] * x
            log = self.ball.log(spread(p, edges), spread(p, edges, senders=True))
            velocity = collect(a[:, None] * log, edges)
            du = derivative_of_log_origin(u, velocity, curvature=self.ball.curvature)
            dz = self.joint.join(du, dx)
            dz = dz if alpha is None else alpha * dz
            return dz if source is None else dz + source

        return FunctionField(dz_dt, (*self.diffusivity.parameters(), *present(alpha, source)))


def derivative_of_log_origin(u: Tensor, v: Tensor, *, curvature: float) -> Tensor:
    r"""Return the derivative of :math:`\log_0` at :math:`p = \exp_0(u)` applied to the vector v; (n, d) -> (n, d)."""
    square = curvature * u.square().sum(-1, keepdim=True)
    flat = square < FLAT
    r = torch.where(flat, torch.ones_like(square), square).sqrt()
    orthogonal = torch.where(flat, 1 + square / 3, r / torch.tanh(r))
    parallel = torch.where(flat, 1 + square, torch.cosh(r).square())
    # (parallel - orthogonal) u u^T / |u|^2, without a division by zero at the origin
    difference = curvature * torch.where(flat, torch.full_like(square, 2 / 3), (parallel - orthogonal) / r.square())
    return orthogonal * v + difference * (u * v).sum(-1, keepdim=True) * u
