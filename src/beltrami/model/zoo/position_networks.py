"""Networks of Table 1 that use positions: MoNet and Transformers, which leave them fixed, and BLEND.

``joint`` is the layout of ``z`` = (positions, features); ``width`` is the width of the projections of all ``heads``
together; ``layers`` and ``scheme`` are as in ``feature_networks``.
"""

import math

from beltrami.diffusivity import Gaussian, Mixture, ScaledDot
from beltrami.flow import BeltramiFlow, FrozenPositions, HyperbolicFlow, LinearFlow
from beltrami.geometry import PoincareBall
from beltrami.joint import Joint
from beltrami.model.evolution import Evolution
from beltrami.model.zoo.zoo_entry import EULER_LAYERS, one_flow_per_layer
from beltrami.scheme import TimeStepping
from beltrami.stencil import KNN, Chain, Charted, Complete, Loops


def monet(joint: Joint, *, layers: int = 2, kernels: int = 2, scheme: TimeStepping = EULER_LAYERS) -> Evolution:
    r"""MoNet (Monti et al. 2017): features X, :math:`a(u_i, u_j)`, fixed E, explicit fixed step.

    .. math:: x_i^{(k+1)} = \sum_j a^{(k)}(u_i, u_j) x_j^{(k)}

    Linear diffusion of the features, weighted by mixtures of ``kernels`` Gaussians on differences of positions
    (:class:`~beltrami.diffusivity.Mixture`). Weights sum to one, and the kernels share the values. Positions are fixed,
    so that weights frozen at the start hold at all times. Hyperbolic positions enter as their logarithm at the origin.
    """
    flow = one_flow_per_layer(lambda: LinearFlow(Mixture(joint, kernels=kernels)), layers)
    return Evolution(FrozenPositions(flow, joint), scheme=scheme, time=layers, stencil=Loops(1.0))


def transformer(
    joint: Joint, *, layers: int = 2, width: int = 64, heads: int = 8, scheme: TimeStepping = EULER_LAYERS
) -> Evolution:
    r"""Transformer (Vaswani et al. 2017): features X, :math:`a((u_i, x_i), (u_j, x_j))`, fixed E = V x V, explicit
    fixed step.

    .. math:: x_i^{(k+1)} = \sum_j a^{(k)}(z_i^{(k)}, z_j^{(k)}) x_j^{(k)}, \qquad a = \mathrm{softmax}_j
        \frac{\langle W_K z_i, W_Q z_j \rangle}{\sqrt{d_k}}

    Attention between all pairs of nodes, loops included, on features and positions; only the features evolve. Heads are
    averaged and the values have no linear map. It has n^2 edges, so it is for some thousands of nodes.
    """
    root = math.sqrt(width / heads)
    flow = one_flow_per_layer(lambda: BeltramiFlow(ScaledDot(joint.channels, width, heads=heads, d_k=root)), layers)
    return Evolution(FrozenPositions(flow, joint), scheme=scheme, time=layers, stencil=Chain(Complete(), Loops(1.0)))


def blend(
    joint: Joint, *, k: int, remesh: float, scheme: TimeStepping, time: float, width: int = 64, heads: int = 8
) -> Evolution:
    r"""BLEND, the paper's own row: positions U and features X, :math:`a((u_i, x_i), (u_j, x_j))`, adaptive E(U),
    explicit adaptive step or implicit.

    .. math:: \frac{\partial z_i}{\partial t} = \sum_{j: (i, j) \in E(U(t))} a(z_i(t), z_j(t)) (z_j - z_i)

    Args:
        joint: the layout of ``z``.
        k: number of nearest nodes by position, the senders of each node.
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
    """:func:`blend` with positions in hyperbolic space ``ball``: they move along geodesics, and the graph and the
    weights use its distances. The weights are Gaussian, the one diffusivity defined there; ``heads`` is its number of
    pairs of lengths. The positions in ``z`` are logarithms at the origin.
    """
    flow = HyperbolicFlow(Gaussian(joint, metric=ball, heads=heads), joint, ball=ball)
    stencil = Charted(KNN(k, metric=ball), lambda z: ball.exp_origin(z[:, joint.u]))
    return Evolution(flow, scheme=scheme, time=time, stencil=stencil, remesh=remesh)
