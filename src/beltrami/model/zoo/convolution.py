"""Networks with fixed weights that mix channels: ChebNet and GCN."""

from beltrami.diffusivity import RandomWalk
from beltrami.flow import ChebyshevFlow, LinearFlow, MixedFlow
from beltrami.graph import Both
from beltrami.model.evolution import Evolution
from beltrami.model.zoo.row import FEATURES, FIXED_STEP, LAYERS, ZooEntry, layered
from beltrami.scheme import TimeStepping
from beltrami.stencil import Loops


def chebnet(channels: int, *, layers: int = 2, terms: int = 3, scheme: TimeStepping = LAYERS) -> Evolution:
    r"""ChebNet (Defferrard et al. 2016): features X, fixed :math:`a_{ij}`, fixed E, explicit fixed step.

    .. math:: X^{(k+1)} = \sum_{l < K} T_l(\hat L) X^{(k)} W^{(k)}_l

    with the normalised Laplacian, shifted by its largest eigenvalue of two, :math:`\hat L = L - I`. The paper's words
    leave open which explicit scheme this is. We take the layer for an Euler step of the diffusion that reaches
    K - 1 hops (:class:`~beltrami.flow.ChebyshevFlow`); it is as well one step in K - 1 stages of plain diffusion, with
    a stability polynomial that is learned. Without non-linearities.

    Args:
        channels: width of ``z``.
        layers: their number, and the terminal time.
        terms: K.
        scheme: Euler steps of length one, or another discretisation of the same flow.
    """
    fixed = RandomWalk(Both())
    flow = layered(lambda: ChebyshevFlow(LinearFlow(fixed), channels, terms=terms), layers)
    return Evolution(flow, scheme=scheme, time=layers)


def gcn(channels: int, *, layers: int = 2, scheme: TimeStepping = LAYERS) -> Evolution:
    r"""GCN (Kipf and Welling 2017): features X, fixed :math:`a_{ij}`, fixed E with loops, explicit fixed step.

    .. math:: X^{(k+1)} = A X^{(k)} W^{(k)}, \qquad A = D^{-1/2} (E + I) D^{-1/2}

    Not a row of Table 1, whose flows mix no channels, but the paper's example of an Onsager diffusion
    (:class:`~beltrami.flow.MixedFlow`). Without non-linearities.

    Args:
        channels: width of ``z``.
        layers: their number, and the terminal time.
        scheme: Euler steps of length one, or another discretisation of the same flow.
    """
    fixed = RandomWalk(Both())
    flow = layered(lambda: MixedFlow(LinearFlow(fixed), channels), layers)
    return Evolution(flow, scheme=scheme, time=layers, stencil=Loops(1.0))


CHEBNET = ZooEntry("ChebNet", FEATURES, "fixed a_ij", "fixed E", FIXED_STEP, "chebnet-flow", chebnet)
GCN = ZooEntry("GCN (Onsager)", FEATURES, "fixed a_ij", "fixed E", FIXED_STEP, "gcn-flow", gcn)
