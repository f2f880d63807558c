"""GAT, graph attention networks (Veličković et al. 2018)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from beltrami.diffusivity import xavier
from beltrami.graph import Edges, Rows, SparseMatrix, aggregate, spread
from beltrami.model.baseline.base import Attentive, Layered
from beltrami.model.baseline.frame import Frame
from beltrami.model.baseline.weight import mean
from beltrami.model.coder import Encoder
from beltrami.model.dropout import Dropout

SLOPE = 0.2  # of the LeakyReLU below zero


class Attention(Attentive):
    r"""Neighbours averaged by attention, in several heads.

    .. math:: F(X)_i = \sum_j a_{ij} W x_j + c, \qquad
        a_{ij} = \mathrm{softmax}_j\, \mathrm{LeakyReLU}(\langle b, W x_i \rangle + \langle b', W x_j \rangle)

    Args:
        channels: width of ``x``.
        out_channels: width of the result; where heads stand side by side, of all together.
        heads: number of heads.
        average: whether the heads are averaged, else they stand side by side.
        dropout: share of ``x`` dropped while training.
        attention_dropout: share of the weights dropped while training.
    """

    def __init__(
        self,
        channels: int,
        out_channels: int,
        *,
        heads: int,
        average: bool = False,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if heads < 1 or (out_channels % heads and not average):
            raise ValueError(f"the width must be a multiple of `heads`; got width={out_channels}, heads={heads}.")
        self.heads, self.average = heads, average
        width = out_channels if average else out_channels // heads
        self.project = Encoder(channels, heads * width, dropout=dropout, bias=False)
        self.receiver = nn.Parameter(torch.empty(heads, width))
        self.sender = nn.Parameter(torch.empty(heads, width))
        self.bias = nn.Parameter(torch.zeros(out_channels))
        self.dropout = Dropout(attention_dropout)
        for weight in (self.project.linear.weight, self.receiver, self.sender):
            xavier(weight)

    def forward(self, x: Tensor | SparseMatrix, edges: Edges) -> Tensor:
        projected = self._projected(x)
        out = aggregate(self.dropout(self._weights(projected, edges)), projected, edges)  # (n, h, k)
        return (out.mean(1) if self.average else out.flatten(1)) + self.bias

    def relative_weights(self, x: Tensor | SparseMatrix, edges: Edges) -> Tensor:
        projected = self._projected(x)
        return self._weights(projected, edges) / mean(edges, projected.dtype)[:, None]

    def _projected(self, x: Tensor | SparseMatrix) -> Tensor:
        return self.project(x).unflatten(-1, (self.heads, -1))  # type: ignore[no-any-return]

    def _weights(self, projected: Tensor, edges: Edges) -> Tensor:
        received, sent = (projected * self.receiver).sum(-1), (projected * self.sender).sum(-1)
        score = F.leaky_relu(spread(received, edges) + spread(sent, edges, senders=True), SLOPE)
        return Rows()(score, edges)


def gat(frame: Frame, *, heads: int = 8, out_heads: int = 1, attention_dropout: float = 0.6) -> Layered:
    """Attention with ELU in between; the last layer averages its heads. Its authors' graph has ``Loops()``.

    Args:
        frame: widths and the graph.
        heads: of each layer but the last.
        out_heads: of the last.
        attention_dropout: share of the weights dropped while training.
    """
    *hidden, (a, b, last) = frame.layers
    layers = [
        Attention(c, d, heads=heads, dropout=share, attention_dropout=attention_dropout) for c, d, share in hidden
    ]
    out = Attention(a, b, heads=out_heads, average=True, dropout=last, attention_dropout=attention_dropout)
    return Layered(frame, [*layers, out], activation=F.elu)
