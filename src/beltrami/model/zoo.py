"""The networks of the paper's Table 1, each a flow on a stencil by a scheme, without non-linearities between layers.

MoNet, Transformers and BLEND use positions; the others use features alone. ``channels`` is the width of ``z``,
``joint`` its layout; ``layers`` is the number of layers and the terminal time, ``width`` the width of the projections
of all ``heads`` together, and ``scheme`` unit Euler steps by default, or another discretisation of the same flow.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from beltrami.diffusivity import Additive, Mixture, RandomWalk, ScaledDot
from beltrami.flow import (
    BeltramiFlow,
    ChebyshevFlow,
    Flow,
    FrozenPositions,
    LinearFlow,
    MessageFlow,
    MixedFlow,
    NodewiseLayer,
    PerInterval,
    TimeVarying,
)
from beltrami.graph import Both
from beltrami.joint import Joint
from beltrami.model.evolution import Evolution
from beltrami.scheme import ConstantSteps, Euler, Scheme, TimeStepping
from beltrami.stencil import KNN, Chain, Complete, Isolated, Loops, TopK, Unweighted

EULER_LAYERS = Scheme(Euler(), ConstantSteps(1.0))
"""Explicit Euler steps of length one: each step is a layer."""


def chebnet(channels: int, *, layers: int = 2, terms: int = 3, scheme: TimeStepping = EULER_LAYERS) -> Evolution:
    r"""ChebNet (Defferrard et al. 2016), of K = ``terms`` polynomials.

    .. math:: X^{(k+1)} = \sum_{l < K} T_l(\hat L) X^{(k)} W^{(k)}_l

    with the shifted normalised Laplacian :math:`\hat L = L - I`. The paper does not say which explicit scheme this is.
    We take the layer as an Euler step of the diffusion that reaches K - 1 hops (:class:`~beltrami.flow.ChebyshevFlow`).
    """
    fixed = RandomWalk(Both())
    flow = _one_flow_per_layer(lambda: ChebyshevFlow(LinearFlow(fixed), channels, terms=terms), layers)
    return Evolution(flow, scheme=scheme, time=layers)


def gcn(channels: int, *, layers: int = 2, scheme: TimeStepping = EULER_LAYERS) -> Evolution:
    r"""GCN (Kipf and Welling 2017), on the graph with self-loops.

    .. math:: X^{(k+1)} = A X^{(k)} W^{(k)}, \qquad A = D^{-1/2} (E + I) D^{-1/2}

    Not a row of Table 1, whose flows mix no channels, but the paper's example of an Onsager diffusion
    (:class:`~beltrami.flow.MixedFlow`).
    """
    fixed = RandomWalk(Both())
    flow = _one_flow_per_layer(lambda: MixedFlow(LinearFlow(fixed), channels), layers)
    return Evolution(flow, scheme=scheme, time=layers, stencil=Loops(1.0))


def gat(
    channels: int, *, layers: int = 2, width: int = 64, heads: int = 8, scheme: TimeStepping = EULER_LAYERS
) -> Evolution:
    r"""GAT (Veličković et al. 2018), on the graph with self-loops.

    .. math:: x_i^{(k+1)} = x_i^{(k)} + \sum_j a^{(k)}(x_i^{(k)}, x_j^{(k)}) (x_j^{(k)} - x_i^{(k)})

    Eq. (11) with :math:`\tau = 1`. The values have no linear map, heads are averaged, each layer has its own attention.
    """
    flow = _attention_flow(channels, layers, width, heads)
    return Evolution(flow, scheme=scheme, time=layers, stencil=Loops(1.0))


def digl(
    channels: int,
    *,
    k: int,
    restart: float = 0.05,
    layers: int = 2,
    width: int = 64,
    heads: int = 8,
    scheme: TimeStepping = EULER_LAYERS,
) -> Evolution:
    """DIGL (Klicpera et al. 2019), attentional: the flow of :func:`gat` on the graph of the ``k`` largest entries in
    each row of personalised PageRank, made once. PageRank chooses the edges; their weights are the attention alone."""
    stencil = Chain(TopK(k, restart=restart), Unweighted())
    return Evolution(_attention_flow(channels, layers, width, heads), scheme=scheme, time=layers, stencil=stencil)


def dgcnn(
    channels: int, *, k: int, layers: int = 2, width: int = 64, heads: int = 8, scheme: TimeStepping = EULER_LAYERS
) -> Evolution:
    r"""DGCNN and DGM (Wang et al. 2019), attentional: the flow of :func:`gat` on the graph of the ``k`` nearest nodes
    in feature space and self-loops, computed before every layer, :math:`E' = E(X(t))`. The input graph is not used."""
    flow, stencil = _attention_flow(channels, layers, width, heads), Chain(KNN(k), Loops(1.0))
    return Evolution(flow, scheme=scheme, time=layers, stencil=stencil, remesh=1.0)


def deepset(channels: int, *, layers: int = 2, width: int = 64, scheme: TimeStepping = EULER_LAYERS) -> Evolution:
    r"""DeepSets and PointNet (Zaheer et al. 2017, Qi et al. 2017), without edges.

    .. math:: x_i^{(k+1)} = x_i^{(k)} + \psi^{(k)}(x_i^{(k)})

    Without edges a diffusion is zero, so the general flow Z' = Psi(Z) reduces to a function psi of each node, with a
    hidden layer of ``width``. It shows what the graph contributes in the other networks.
    """

    def flow() -> MessageFlow:
        psi = nn.Sequential(nn.Linear(channels, width), nn.ReLU(), nn.Linear(width, channels))
        return MessageFlow(NodewiseLayer(psi))

    return Evolution(_one_flow_per_layer(flow, layers), scheme=scheme, time=layers, stencil=Isolated())


def grand(channels: int, *, scheme: TimeStepping, time: float, width: int = 64, heads: int = 8) -> Evolution:
    r"""GRAND (Chamberlain et al. 2021), its linear variant with attention frozen at the start: BLEND without positions.

    .. math:: \frac{\partial x_i}{\partial t} = \sum_j a(x_i(0), x_j(0)) (x_j - x_i)
    """
    flow = LinearFlow(ScaledDot(channels, width, heads=heads))
    return Evolution(flow, scheme=scheme, time=time, stencil=Loops(1.0))


def monet(joint: Joint, *, layers: int = 2, kernels: int = 2, scheme: TimeStepping = EULER_LAYERS) -> Evolution:
    r"""MoNet (Monti et al. 2017), on the graph with self-loops.

    .. math:: x_i^{(k+1)} = \sum_j a^{(k)}(u_i, u_j) x_j^{(k)}

    Linear diffusion of the features, weighted by mixtures of ``kernels`` Gaussians on differences of positions
    (:class:`~beltrami.diffusivity.Mixture`). Weights sum to one, and the kernels share the values. Hyperbolic positions
    enter as their logarithm at the origin.
    """
    flow = _one_flow_per_layer(lambda: LinearFlow(Mixture(joint, kernels=kernels)), layers)
    return Evolution(FrozenPositions(flow, joint), scheme=scheme, time=layers, stencil=Loops(1.0))


def transformer(
    joint: Joint, *, layers: int = 2, width: int = 64, heads: int = 8, scheme: TimeStepping = EULER_LAYERS
) -> Evolution:
    r"""Transformer (Vaswani et al. 2017): attention between all pairs of nodes, loops included.

    .. math:: x_i^{(k+1)} = \sum_j a^{(k)}(z_i^{(k)}, z_j^{(k)}) x_j^{(k)}, \qquad a = \mathrm{softmax}_j
        \frac{\langle W_K z_i, W_Q z_j \rangle}{\sqrt{d_k}}

    Only the features evolve. Heads are averaged and the values have no linear map. It has n^2 edges, so it is for some
    thousands of nodes.
    """
    root = math.sqrt(width / heads)
    flow = _one_flow_per_layer(lambda: BeltramiFlow(ScaledDot(joint.channels, width, heads=heads, d_k=root)), layers)
    return Evolution(FrozenPositions(flow, joint), scheme=scheme, time=layers, stencil=Chain(Complete(), Loops(1.0)))


def blend(
    joint: Joint, *, k: int, remesh: float, scheme: TimeStepping, time: float, width: int = 64, heads: int = 8
) -> Evolution:
    r"""BLEND, the paper's own row.

    .. math:: \frac{\partial z_i}{\partial t} = \sum_{j: (i, j) \in E(U(t))} a(z_i(t), z_j(t)) (z_j - z_i)

    ``k`` is the number of nearest nodes by position, the senders of each node, and ``remesh`` the time between two
    graphs. ``scheme`` is ``Scheme(Dopri5(), PID(rtol, atol))``, say, or implicit.
    """
    flow = BeltramiFlow(ScaledDot(joint.channels, width, heads=heads))
    return Evolution(flow, scheme=scheme, time=time, stencil=KNN(k, on=joint.u), remesh=remesh)


def _attention_flow(channels: int, layers: int, width: int, heads: int) -> Flow:
    return _one_flow_per_layer(lambda: BeltramiFlow(Additive(channels, width, heads=heads)), layers)


def _one_flow_per_layer(make: Callable[[], Flow], layers: int) -> Flow:
    """Return a flow with separate parameters for each layer, a time interval of length one."""
    if layers < 1:
        raise ValueError(f"a network needs at least one of `layers`; got {layers}.")
    return make() if layers == 1 else TimeVarying([make() for _ in range(layers)], PerInterval(layers))


@dataclass(frozen=True)
class ZooEntry:
    """A network of Table 1: its columns there, the function that builds it, and the recipe that trains it."""

    method: str
    build: Callable[..., Evolution]
    recipe: str
    diffusivity: str
    graph: str
    evolution: str = "features X"
    discretisation: str = "explicit, fixed step"


ADAPTIVE_OR_IMPLICIT = "explicit, adaptive step, or implicit"
TABLE = (
    ZooEntry("ChebNet", chebnet, "chebnet-flow", diffusivity="fixed a_ij", graph="fixed E"),
    ZooEntry("GAT", gat, "gat-flow", diffusivity="a(x_i, x_j)", graph="fixed E"),
    ZooEntry("MoNet", monet, "monet-flow", diffusivity="a(u_i, u_j)", graph="fixed E"),
    ZooEntry("Transformer", transformer, "transformer-flow", diffusivity="a(z_i, z_j)", graph="fixed E = V x V"),
    ZooEntry("DeepSet/PointNet", deepset, "deepset-flow", diffusivity="a(x_i)", graph="fixed E = {}"),
    ZooEntry("DIGL", digl, "digl-flow", diffusivity="a(x_i, x_j)", graph="fixed E(U)"),
    ZooEntry("DGCNN/DGM", dgcnn, "dgcnn-flow", diffusivity="a(x_i, x_j)", graph="adaptive E(X)"),
    ZooEntry("GCN (Onsager)", gcn, "gcn-flow", diffusivity="fixed a_ij", graph="fixed E"),
    ZooEntry("GRAND", grand, "grand", "a(x_i, x_j)", "fixed E", discretisation="explicit, adaptive step"),
    ZooEntry("BLEND", blend, "blend", "a(z_i, z_j)", "adaptive E(U)", "positions U + features X", ADAPTIVE_OR_IMPLICIT),
)
"""The networks in the order of Table 1; GCN and GRAND, which it does not list, before BLEND."""
