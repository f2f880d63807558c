"""Networks of sets: DeepSets and PointNet."""

from torch import nn

from beltrami.flow import MessageFlow, NodewiseLayer
from beltrami.model.evolution import Evolution
from beltrami.model.zoo.row import FEATURES, FIXED_STEP, LAYERS, ZooEntry, layered
from beltrami.scheme import TimeStepping
from beltrami.stencil import Isolated


def deepset(channels: int, *, layers: int = 2, width: int = 64, scheme: TimeStepping = LAYERS) -> Evolution:
    r"""DeepSets and PointNet (Zaheer et al. 2017, Qi et al. 2017): features X, :math:`a(x_i)`, fixed
    :math:`E = \emptyset`, explicit fixed step.

    .. math:: x_i^{(k+1)} = x_i^{(k)} + \psi^{(k)}(x_i^{(k)})

    Without edges a diffusion stands still, so that what is left of the general flow Z' = Psi(Z) is a function of each
    node by itself: psi has one hidden layer, and is shared by all nodes. What a graph adds is measured against this.

    Args:
        channels: width of ``z``.
        layers: their number, and the terminal time.
        width: of the hidden layer of psi.
        scheme: Euler steps of length one, or another discretisation of the same flow.
    """

    def flow() -> MessageFlow:
        psi = nn.Sequential(nn.Linear(channels, width), nn.ReLU(), nn.Linear(width, channels))
        return MessageFlow(NodewiseLayer(psi))

    return Evolution(layered(flow, layers), scheme=scheme, time=layers, stencil=Isolated())


DEEPSET = ZooEntry("DeepSet/PointNet", FEATURES, "a(x_i)", "fixed E = {}", FIXED_STEP, "deepset-flow", deepset)
