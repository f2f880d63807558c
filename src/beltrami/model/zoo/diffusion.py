"""Networks whose time is continuous: GRAND and BLEND."""

from beltrami.diffusivity import Gaussian, ScaledDot
from beltrami.flow import BeltramiFlow, Flow, HyperbolicFlow, LinearFlow
from beltrami.geometry import PoincareBall
from beltrami.joint import Joint
from beltrami.model.evolution import Evolution
from beltrami.model.zoo.row import FEATURES, ZooEntry
from beltrami.scheme import TimeStepping
from beltrami.stencil import KNN, Charted, Loops, Stencil


def grand(channels: int, *, scheme: TimeStepping, time: float, width: int = 64, heads: int = 8) -> Evolution:
    r"""GRAND (Chamberlain et al. 2021): features X, :math:`a(x_i, x_j)`, fixed E, any scheme.

    .. math:: \frac{\partial x_i}{\partial t} = \sum_j a(x_i(0), x_j(0)) (x_j - x_i)

    BLEND without positions, which came before it. The linear variant, with attention frozen at the start.

    Args:
        channels: width of ``z``.
        scheme: with adaptive steps, ``Exponential``, or any other.
        time: T.
        width: of the projections, all heads together.
        heads: number of heads.
    """
    flow = LinearFlow(ScaledDot(channels, width, heads=heads))
    return Evolution(flow, scheme=scheme, time=time, stencil=Loops(1.0))


def blend(
    joint: Joint, *, k: int, remesh: float, scheme: TimeStepping, time: float, width: int = 64, heads: int = 8
) -> Evolution:
    r"""BLEND, the paper's own row: positions U and features X, :math:`a((u_i, x_i), (u_j, x_j))`, adaptive E(U),
    explicit adaptive step or implicit.

    .. math:: \frac{\partial z_i}{\partial t} = \sum_{j: (i, j) \in E(U(t))} a(z_i(t), z_j(t)) (z_j - z_i)

    Args:
        joint: the channels of ``z``.
        k: nearest nodes in the positions that each node hears from.
        remesh: time between two graphs.
        scheme: such as ``Scheme(Dopri5(), PID(rtol, atol))``, or implicit.
        time: T.
        width: of the projections, all heads together.
        heads: number of heads.
    """
    flow = BeltramiFlow(ScaledDot(joint.channels, width, heads=heads))
    return Evolution(flow, scheme=scheme, time=time, stencil=KNN(k, on=joint.u), remesh=remesh)


def hyperbolic_blend(
    joint: Joint, *, ball: PoincareBall, k: int, remesh: float, scheme: TimeStepping, time: float, heads: int = 1
) -> Evolution:
    """:func:`blend` with positions in hyperbolic space: they move along geodesics, and distances, of the graph and of
    the weights, are those of the ball. The weights are Gaussian, the one diffusivity that measures there.

    Args:
        joint: the channels of ``z``, positions as their logarithms at the origin.
        ball: where the positions live.
        k, remesh, scheme, time: as of :func:`blend`.
        heads: pairs of lengths of the Gaussian.
    """
    flow: Flow = HyperbolicFlow(Gaussian(joint, metric=ball, heads=heads), joint, ball=ball)
    stencil: Stencil = Charted(KNN(k, metric=ball), lambda z: ball.exp_origin(z[:, joint.u]))
    return Evolution(flow, scheme=scheme, time=time, stencil=stencil, remesh=remesh)


GRAND = ZooEntry("GRAND", FEATURES, "a(x_i, x_j)", "fixed E", "explicit, adaptive step", "grand", grand)
BLEND = ZooEntry(
    "BLEND",
    "positions U + features X",
    "a(z_i, z_j)",
    "adaptive E(U)",
    "explicit, adaptive step, or implicit",
    "blend",
    blend,
)
