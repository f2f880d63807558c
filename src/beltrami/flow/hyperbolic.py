"""The Beltrami flow of positions in the Poincaré ball."""

import torch
from torch import Tensor

from beltrami.diffusivity import Diffusivity
from beltrami.flow.base import Flow, VectorField
from beltrami.flow.source import Rate, Source
from beltrami.geometry import PoincareBall
from beltrami.graph import Edges, aggregate, collect, spread
from beltrami.joint import Joint

FLAT = 1e-4  # below this square, x / tanh(x) and cosh(x)^2 are their Taylor polynomials


class HyperbolicFlow(Flow):
    r"""The graph Beltrami flow with positions in hyperbolic space: the difference becomes the logarithm.

    .. math:: \frac{\partial p_i}{\partial t} = \alpha \sum_j a(z_i, z_j) \log_{p_i}(p_j), \qquad
        \frac{\partial x_i}{\partial t} = \alpha \sum_j a(z_i, z_j) (x_j - x_i)

    :math:`\log_{p_i}(p_j)` is the velocity at p_i of the geodesic to p_j, as z_j - z_i is in flat space; each point is
    drawn towards its neighbours along geodesics, so that the convex hull of the points never grows and the flow stays
    inside the ball. The state does not hold p but its logarithm at the origin, :math:`u = \log_0 p`, any vector of
    :math:`R^{d'}`: the equation is carried over to u by the derivative of :math:`\log_0`,

    .. math:: \frac{\partial u}{\partial t} = \cosh^2(r)\, v_\parallel + \frac{r}{\tanh r} v_\perp, \qquad
        r = \sqrt c\, \|u\|,

    with v the velocity of p, split along u and across it. So no step of any scheme can leave the ball, though far out
    (hyperbolic distances beyond ten) the equation is stiff and wants short ones. Positions that come as points of the
    ball enter as ``ball.log_origin(p)``.

    Args:
        diffusivity: the weights a, which should sum to one over rows; one that sees u measures it as it likes.
        joint: which channels of ``z`` are positions.
        ball: the space they live in.
        rate: learnable alpha, or None for one.
        source: learnable beta z(0), or None for none; for positions it pulls along the ray of the start.
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

    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> "HyperbolicField":
        alpha: Tensor | None = None if self.rate is None else self.rate()
        source: Tensor | None = None if self.source is None else self.source(z if start is None else start)
        return HyperbolicField(self, edges, alpha=alpha, source=source)


class HyperbolicField(VectorField):
    """The vector field of :class:`HyperbolicFlow` on a graph. Positions, being few channels, are gathered on edges."""

    def __init__(self, flow: HyperbolicFlow, edges: Edges, *, alpha: Tensor | None, source: Tensor | None) -> None:
        self.flow, self.edges, self.alpha, self.source = flow, edges, alpha, source
        self.anchored = flow.diffusivity.normalise.connected(edges)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        bound = tuple(tensor for tensor in (self.alpha, self.source) if tensor is not None)
        return (*self.flow.diffusivity.parameters(), *bound)

    def __call__(self, t: float, z: Tensor) -> Tensor:
        u, x = self.flow.joint.split(z)
        a = self.flow.diffusivity(z, self.edges)
        dx = aggregate(a, x, self.edges) - self.anchored.to(z.dtype)[:, None] * x
        dz = self.flow.joint.join(self._du(a, u), dx)
        if self.alpha is not None:
            dz = self.alpha * dz
        return dz if self.source is None else dz + self.source

    def _du(self, a: Tensor, u: Tensor) -> Tensor:
        ball = self.flow.ball
        p = ball.exp_origin(u)
        towards = ball.log(spread(p, self.edges), spread(p, self.edges, senders=True))
        velocity = collect(a[:, None] * towards, self.edges)
        return push_log_origin(u, velocity, curvature=ball.curvature)


def push_log_origin(u: Tensor, v: Tensor, *, curvature: float) -> Tensor:
    r"""The derivative of :math:`\log_0` at :math:`p = \exp_0(u)` applied to the tangent vector v; (n, d) -> (n, d).

    Near the origin it is the identity.
    """
    square = curvature * u.square().sum(-1, keepdim=True)
    near = square < FLAT
    r = torch.where(near, torch.ones_like(square), square).sqrt()
    across = torch.where(near, 1 + square / 3, r / torch.tanh(r))
    along = torch.where(near, 1 + square, torch.cosh(r).square())
    # (along - across) u u^T / |u|^2, without a division by zero at the origin
    difference = curvature * torch.where(near, torch.full_like(square, 2 / 3), (along - across) / r.square())
    return across * v + difference * (u * v).sum(-1, keepdim=True) * u
