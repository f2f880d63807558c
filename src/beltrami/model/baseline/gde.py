"""GDE (Poli et al. 2019) and GODE (Zhuang et al. 2020), graph convolutions as the right-hand side of an equation."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from beltrami.graph import Edges, SparseMatrix
from beltrami.model.baseline.base import Layer
from beltrami.model.baseline.frame import Frame
from beltrami.model.baseline.gcn import Convolution
from beltrami.model.baseline.ode import Bound, Field, GraphODE
from beltrami.scheme import TimeStepping

Activation = Callable[[Tensor], Tensor]


class Convolutions(Field):
    r"""Graph convolutions one after the other, with an activation after each.

    .. math:: f(H) = \sigma(F_k(\dots \sigma(F_1(H))))

    One explicit Euler step of length one, :math:`H + f(H)`, is a residual layer. While it is solved nothing is dropped:
    the equation would be another one at every evaluation.

    Args:
        width: channels of H and of all in between.
        depth: k.
        activation: :math:`\sigma`.
    """

    def __init__(self, width: int, *, depth: int, activation: Activation) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Convolution(width, width) for _ in range(depth))
        self.activation = activation

    @property
    def synchronises(self) -> bool:
        return False

    def bind(self, h0: Tensor, edges: Edges) -> Bound:
        def dh_dt(h: Tensor) -> Tensor:
            for layer in self.layers:
                h = self.activation(layer(h, edges))
            return h

        return Bound(dh_dt, tuple(self.parameters()))


class Activated(Layer):
    """A layer with an activation after it."""

    def __init__(self, layer: Layer, activation: Activation) -> None:
        super().__init__()
        self.layer, self.activation = layer, activation

    def forward(self, x: Tensor | SparseMatrix, edges: Edges) -> Tensor:
        return self.activation(self.layer(x, edges))


def gde(frame: Frame, *, scheme: TimeStepping, time: float) -> GraphODE:
    """Graph neural ODEs: between the two convolutions of a GCN, a third that acts continuously."""
    return _between_convolutions(frame, 1, scheme, time)


def gode(frame: Frame, *, scheme: TimeStepping, time: float) -> GraphODE:
    """Graph ODEs: what acts continuously is a whole GCN, of as many layers as ``frame`` says.

    Its authors differentiate the steps taken (``Direct``). Their bijective blocks save memory; here ``Checkpointed``
    is there for that.
    """
    return _between_convolutions(frame, frame.depth, scheme, time)


def _between_convolutions(frame: Frame, depth: int, scheme: TimeStepping, time: float) -> GraphODE:
    first = Activated(Convolution(frame.channels, frame.width, dropout=frame.input_dropout), F.relu)
    field = Convolutions(frame.width, depth=depth, activation=torch.tanh)
    last = Convolution(frame.width, frame.num_classes, dropout=frame.dropout)
    return GraphODE(frame, first, field, last, scheme=scheme, time=time)
