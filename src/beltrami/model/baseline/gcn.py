"""GCN, graph convolutional networks (Kipf and Welling 2017)."""

import torch
from torch import Tensor, nn

from beltrami.diffusivity import xavier
from beltrami.graph import Edges, SparseMatrix, aggregate
from beltrami.model.baseline.base import Layer, Layered
from beltrami.model.baseline.frame import Frame
from beltrami.model.baseline.weight import symmetric
from beltrami.model.coder import Encoder


class Convolution(Layer):
    r"""The graph convolution.

    .. math:: F(X) = D^{-1/2} A D^{-1/2} X W + b

    A is the adjacency matrix of the edges as they come; those of GCN have self-loops.

    Args:
        channels: width of ``x``.
        out_channels: width of the result.
        dropout: share of ``x`` dropped while training.
    """

    def __init__(self, channels: int, out_channels: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.project = Encoder(channels, out_channels, dropout=dropout, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))
        xavier(self.project.linear.weight)

    def forward(self, x: Tensor | SparseMatrix, edges: Edges) -> Tensor:
        projected = self.project(x)
        return aggregate(symmetric(edges, projected.dtype), projected, edges) + self.bias


def gcn(frame: Frame) -> Layered:
    """Convolutions with ReLU in between; its authors' graph has ``Loops()``."""
    return Layered(frame, [Convolution(a, b, dropout=share) for a, b, share in frame.layers])
