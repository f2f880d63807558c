"""Networks that attend to features: GAT, and the same on other graphs, DIGL and DGCNN."""

from beltrami.diffusivity import Additive
from beltrami.flow import BeltramiFlow, Flow
from beltrami.model.evolution import Evolution
from beltrami.model.zoo.row import FEATURES, FIXED_STEP, LAYERS, ZooEntry, layered
from beltrami.scheme import TimeStepping
from beltrami.stencil import KNN, Chain, Loops, TopK, Unweighted


def gat(channels: int, *, layers: int = 2, width: int = 64, heads: int = 8, scheme: TimeStepping = LAYERS) -> Evolution:
    r"""GAT (Veličković et al. 2018): features X, :math:`a(x_i, x_j)`, fixed E, explicit fixed step.

    .. math:: x_i^{(k+1)} = x_i^{(k)} + \sum_j a^{(k)}(x_i^{(k)}, x_j^{(k)}) (x_j^{(k)} - x_i^{(k)})

    Eq. (11) with :math:`\tau = 1`: GAT without non-linearities and without a map of its values, its heads averaged,
    each layer with attention of its own. On the graph with self-loops, as GAT is.

    Args:
        channels: width of ``z``.
        layers: their number, and the terminal time.
        width: of the projections, all heads together.
        heads: number of heads.
        scheme: Euler steps of length one, or another discretisation of the same flow.
    """
    return Evolution(_attention(channels, layers, width, heads), scheme=scheme, time=layers, stencil=Loops(1.0))


def digl(
    channels: int,
    *,
    k: int,
    restart: float = 0.05,
    layers: int = 2,
    width: int = 64,
    heads: int = 8,
    scheme: TimeStepping = LAYERS,
) -> Evolution:
    r"""DIGL (Klicpera et al. 2019), attentional: features X, :math:`a(x_i, x_j)`, fixed E(U), explicit fixed step.

    The flow of :func:`gat` on the graph of the ``k`` largest entries in each row of personalised PageRank, made once.
    Those entries choose the edges and attention alone weighs them.

    Args:
        channels: width of ``z``.
        k: edges that enter each node, its loop among them.
        restart: of PageRank.
        layers, width, heads, scheme: as of :func:`gat`.
    """
    stencil = Chain(TopK(k, restart=restart), Unweighted())
    return Evolution(_attention(channels, layers, width, heads), scheme=scheme, time=layers, stencil=stencil)


def dgcnn(
    channels: int, *, k: int, layers: int = 2, width: int = 64, heads: int = 8, scheme: TimeStepping = LAYERS
) -> Evolution:
    r"""DGCNN and DGM (Wang et al. 2019), attentional: features X, :math:`a(x_i, x_j)`, adaptive E(X), explicit
    fixed step.

    The flow of :func:`gat` on the graph of the ``k`` nearest nodes in the features, found anew before every layer,
    :math:`E' = E(X(t))`. The input graph is not looked at.

    Args:
        channels: width of ``z``.
        k: edges that enter each node, besides its loop.
        layers, width, heads, scheme: as of :func:`gat`.
    """
    return Evolution(
        _attention(channels, layers, width, heads),
        scheme=scheme,
        time=layers,
        stencil=Chain(KNN(k), Loops(1.0)),
        remesh=1.0,
    )


def _attention(channels: int, layers: int, width: int, heads: int) -> Flow:
    return layered(lambda: BeltramiFlow(Additive(channels, width, heads=heads)), layers)


GAT = ZooEntry("GAT", FEATURES, "a(x_i, x_j)", "fixed E", FIXED_STEP, "gat-flow", gat)
DIGL = ZooEntry("DIGL", FEATURES, "a(x_i, x_j)", "fixed E(U)", FIXED_STEP, "digl-flow", digl)
DGCNN = ZooEntry("DGCNN/DGM", FEATURES, "a(x_i, x_j)", "adaptive E(X)", FIXED_STEP, "dgcnn-flow", dgcnn)
