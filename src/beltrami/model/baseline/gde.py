"""GDE (Poli et al. 2019) and GODE (Zhuang et al. 2020), graph convolutions as the right-hand side of an equation."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from beltrami.graph import Edges, Sparse
from beltrami.model.baseline.base import Layer
from beltrami.model.baseline.frame import Frame
from beltrami.model.baseline.gcn import Convolution
from beltrami.model.baseline.ode import Bound, Field, GraphODE, Pointwise
from beltrami.model.coder import Decoder, Encoder
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
    def waits(self) -> bool:
        return False

    def bind(self, h0: Tensor, edges: Edges) -> Bound:
        def dh_dt(h: Tensor) -> Tensor:
            for layer in self.layers:
                h = self.activation(layer(h, edges))
            return h

        return Bound(dh_dt, tuple(self.parameters()))


class Activated(Layer):
    """Layers, each with an activation after it."""

    def __init__(self, layers: Sequence[Layer], activation: Activation) -> None:
        super().__init__()
        self.layers, self.activation = nn.ModuleList(layers), activation

    def forward(self, x: Tensor | Sparse, edges: Edges) -> Tensor:
        first, *others = self.layers
        out = self.activation(first(x, edges))
        for layer in others:
            out = self.activation(layer(out, edges))
        return out


def gde(frame: Frame, *, scheme: TimeStepping, time: float) -> GraphODE:
    """Graph neural ODEs: between the two convolutions of a GCN, one that acts continuously."""
    first = Activated([Convolution(frame.channels, frame.width, dropout=frame.input_dropout)], F.relu)
    field = Convolutions(frame.width, depth=1, activation=torch.tanh)
    last = Convolution(frame.width, frame.num_classes, dropout=frame.dropout)
    return GraphODE(frame, first, field, last, scheme=scheme, time=time)


def gode(frame: Frame, *, scheme: TimeStepping, time: float) -> GraphODE:
    """Graph ODEs: all of the graph is in the equation, whose right-hand side is a GCN; encoder and decoder see nodes.

    Its authors differentiate the steps taken (``Direct``). Their bijective blocks save memory; here ``Checkpointed``
    is there for that.
    """
    first = Pointwise(Encoder(frame.channels, frame.width, dropout=frame.input_dropout))
    field = Convolutions(frame.width, depth=frame.depth, activation=torch.tanh)
    last = Pointwise(Decoder(frame.width, frame.num_classes, dropout=frame.dropout))
    return GraphODE(frame, first, field, last, scheme=scheme, time=time)
