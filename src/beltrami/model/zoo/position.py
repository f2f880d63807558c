"""Networks that look at positions and leave them where they are: MoNet and Transformers."""

import math

from beltrami.diffusivity import Mixture, ScaledDot
from beltrami.flow import BeltramiFlow, FrozenPositions, LinearFlow
from beltrami.joint import Joint
from beltrami.model.evolution import Evolution
from beltrami.model.zoo.row import FEATURES, FIXED_STEP, LAYERS, ZooEntry, layered
from beltrami.scheme import TimeStepping
from beltrami.stencil import Chain, Complete, Loops


def monet(joint: Joint, *, layers: int = 2, kernels: int = 2, scheme: TimeStepping = LAYERS) -> Evolution:
    r"""MoNet (Monti et al. 2017): features X, :math:`a(u_i, u_j)`, fixed E, explicit fixed step.

    .. math:: x_i^{(k+1)} = \sum_j a^{(k)}(u_i, u_j) x_j^{(k)}

    Linear diffusion of the features, by mixtures of Gaussians on the difference of positions as pseudo-coordinates
    (:class:`~beltrami.diffusivity.Mixture`). Weights sum to one, and the kernels share the values. Positions stand
    still, so that weights frozen at the start are the weights at all times.

    Args:
        joint: the channels of ``z``; hyperbolic positions enter as their logarithm at the origin.
        layers: their number, and the terminal time.
        kernels: Gaussians in each layer.
        scheme: Euler steps of length one, or another discretisation of the same flow.
    """
    flow = layered(lambda: LinearFlow(Mixture(joint, kernels=kernels)), layers)
    return Evolution(FrozenPositions(flow, joint), scheme=scheme, time=layers, stencil=Loops(1.0))


def transformer(
    joint: Joint, *, layers: int = 2, width: int = 64, heads: int = 8, scheme: TimeStepping = LAYERS
) -> Evolution:
    r"""Transformer (Vaswani et al. 2017): features X, :math:`a((u_i, x_i), (u_j, x_j))`, fixed E = V x V, explicit
    fixed step.

    .. math:: x_i^{(k+1)} = \sum_j a^{(k)}(z_i^{(k)}, z_j^{(k)}) x_j^{(k)}, \qquad a = \mathrm{softmax}_j
        \frac{\langle W_K z_i, W_Q z_j \rangle}{\sqrt{d_k}}

    Attention among all nodes, oneself among them, to features and positional encodings, of which the features evolve.
    Heads are averaged and values have no map of their own. All n^2 edges are there: for some thousands of nodes.

    Args:
        joint: the channels of ``z``; without positions, the nodes are a set.
        layers: their number, and the terminal time.
        width: of the projections, all heads together.
        heads: number of heads.
        scheme: Euler steps of length one, or another discretisation of the same flow.
    """
    root = math.sqrt(width / heads)
    flow = layered(lambda: BeltramiFlow(ScaledDot(joint.channels, width, heads=heads, d_k=root)), layers)
    return Evolution(FrozenPositions(flow, joint), scheme=scheme, time=layers, stencil=Chain(Complete(), Loops(1.0)))


MONET = ZooEntry("MoNet", FEATURES, "a(u_i, u_j)", "fixed E", FIXED_STEP, "monet-flow", monet)
TRANSFORMER = ZooEntry(
    "Transformer", FEATURES, "a(z_i, z_j)", "fixed E = V x V", FIXED_STEP, "transformer-flow", transformer
)
