"""GraphSAGE, the mean or the maximum over neighbours (Hamilton et al. 2017)."""

import torch
from torch import Tensor, nn

from beltrami.diffusivity import xavier
from beltrami.graph import Edges, SparseMatrix, aggregate
from beltrami.model.baseline.base import Layer, Layered
from beltrami.model.baseline.frame import Frame
from beltrami.model.baseline.weight import mean
from beltrami.model.coder import Encoder


class Mean(Layer):
    r"""A node beside the mean of its neighbours.

    .. math:: F(X)_i = W x_i + V \operatorname{mean}_j x_j + b

    Args:
        channels: width of ``x``.
        out_channels: width of the result.
        dropout: share of ``x`` dropped while training.
    """

    def __init__(self, channels: int, out_channels: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.project = Encoder(channels, 2 * out_channels, dropout=dropout, bias=False)  # V above W
        self.bias = nn.Parameter(torch.zeros(out_channels))
        for weight in self.project.linear.weight.detach().chunk(2):
            xavier(weight)

    def forward(self, x: Tensor | SparseMatrix, edges: Edges) -> Tensor:
        near, own = self.project(x).chunk(2, dim=-1)
        out: Tensor = own + aggregate(mean(edges, near.dtype), near, edges) + self.bias
        return out


class MaxPool(Layer):
    r"""A node beside the largest of what its neighbours show, channel by channel; zero without neighbours.

    .. math:: F(X)_i = W x_i + V \max_j \mathrm{ReLU}(P x_j + p) + b

    Args:
        channels: width of ``x``.
        out_channels: width of the result.
        pooled: rows of P.
        dropout: share of ``x`` dropped while training.
    """

    def __init__(self, channels: int, out_channels: int, *, pooled: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.widths = [pooled, out_channels]
        self.project = Encoder(channels, pooled + out_channels, dropout=dropout, bias=False)  # P above W
        self.shift = nn.Parameter(torch.zeros(pooled))
        self.mix = nn.Linear(pooled, out_channels)
        for weight in (*self.project.linear.weight.detach().split(self.widths), self.mix.weight):
            xavier(weight)

    def forward(self, x: Tensor | SparseMatrix, edges: Edges) -> Tensor:
        shown, own = self.project(x).split(self.widths, dim=-1)
        shown = torch.relu(shown + self.shift)
        there = shown.index_select(0, edges.j)
        nothing = torch.zeros_like(shown)  # no value is below it
        largest = nothing.scatter_reduce(0, edges.i[:, None].expand_as(there), there, "amax")
        out: Tensor = own + self.mix(largest)
        return out


def sage_mean(frame: Frame) -> Layered:
    """Means with ReLU in between."""
    return Layered(frame, [Mean(a, b, dropout=share) for a, b, share in frame.layers])


def sage_maxpool(frame: Frame) -> Layered:
    """Maxima of the hidden width with ReLU in between."""
    return Layered(frame, [MaxPool(a, b, pooled=frame.width, dropout=share) for a, b, share in frame.layers])
