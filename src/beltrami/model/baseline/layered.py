"""Baselines of consecutive layers: GCN, GAT, MoNet and GraphSAGE."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from beltrami.arguments import checked
from beltrami.diffusivity import xavier
from beltrami.graph import Edges, Rows, aggregate, spread
from beltrami.model.baseline.base import (
    Architecture,
    DiscreteBaseline,
    cached_per_graph,
    mean_weights,
    symmetric_weights,
)
from beltrami.model.coder import Dropout, Encoder, Matrix
from beltrami.model.inputs import Inputs

NEGATIVE_SLOPE = 0.2  # of GAT's LeakyReLU


class LayeredNetwork(DiscreteBaseline):
    r"""Layers with an activation in between, :math:`x^{(k+1)} = F_k(\sigma(x^{(k)}))`; the last gives the scores.

    A layer is called as ``layer(x, edges)``, ``x`` (n, channels), dense or sparse -> (n, out_channels).
    """

    def __init__(
        self, architecture: Architecture, layers: Sequence[nn.Module], activation: Callable[[Tensor], Tensor] = F.relu
    ) -> None:
        super().__init__(architecture)
        self.layers, self.activation = nn.ModuleList(layers), activation

    @torch.no_grad()
    def attention_spread(self, inputs: Inputs) -> float:
        """Return the spread of the first layer, its heads averaged."""
        first = self.layers[0]
        if not isinstance(first, GATLayer | MoNetLayer) or not inputs.edges.num_edges:
            return 0.0
        return float(first.relative_weights(inputs.x, inputs.edges).mean(-1).std(correction=0))

    def scores(self, inputs: Inputs) -> Tensor:
        first, *others = self.layers
        x: Tensor = first(inputs.x, inputs.edges)
        for layer in others:
            x = layer(self.activation(x), inputs.edges)
        return x


class GCNLayer(nn.Module):
    r"""The graph convolution of Kipf and Welling (2017).

    .. math:: F(X) = D^{-1/2} A D^{-1/2} X W + b

    A is the adjacency matrix of the given edges; GCN's have self-loops. ``dropout`` is applied to ``x``.
    """

    def __init__(self, channels: int, out_channels: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.project = Encoder(channels, out_channels, dropout=dropout, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))
        xavier(self.project.linear.weight)

    def forward(self, x: Matrix, edges: Edges) -> Tensor:
        projected = self.project(x)
        return aggregate(symmetric_weights(edges, projected.dtype), projected, edges) + self.bias


class GATLayer(nn.Module):
    r"""The graph attention of Veličković et al. (2018), with several heads.

    .. math:: F(X)_i = \sum_j a_{ij} W x_j + c, \qquad
        a_{ij} = \mathrm{softmax}_j\, \mathrm{LeakyReLU}(\langle b, W x_i \rangle + \langle b', W x_j \rangle)

    Heads are averaged if ``average``; else they are concatenated, and ``out_channels`` is the width of all together.
    ``dropout`` is applied to ``x``, ``attention_dropout`` to the weights.
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
        self.receiver, self.sender = (nn.Parameter(torch.empty(heads, width)) for _ in range(2))
        self.bias = nn.Parameter(torch.zeros(out_channels))
        self.dropout = Dropout(attention_dropout)
        for weight in (self.project.linear.weight, self.receiver, self.sender):
            xavier(weight)

    def forward(self, x: Matrix, edges: Edges) -> Tensor:
        projected = self._projected(x)
        out = aggregate(self.dropout(self._weights(projected, edges)), projected, edges)  # (n, h, k)
        return (out.mean(1) if self.average else out.flatten(1)) + self.bias

    def relative_weights(self, x: Matrix, edges: Edges) -> Tensor:
        """Return the learned weights, each divided by its value for uniform attention, (m, h)."""
        projected = self._projected(x)
        return self._weights(projected, edges) / mean_weights(edges, projected.dtype)[:, None]

    def _projected(self, x: Matrix) -> Tensor:
        return self.project(x).unflatten(-1, (self.heads, -1))  # type: ignore[no-any-return]

    def _weights(self, projected: Tensor, edges: Edges) -> Tensor:
        received, sent = (projected * self.receiver).sum(-1), (projected * self.sender).sum(-1)
        score = F.leaky_relu(spread(received, edges) + spread(sent, edges, senders=True), NEGATIVE_SLOPE)
        return Rows()(score, edges)


class MoNetLayer(nn.Module):
    r"""Mixtures of Gaussians on pseudo-coordinates (Monti et al. 2017), each with its own linear map.

    .. math:: F(X)_i = W_0 x_i + \operatorname{mean}_j \sum_k e^{-\frac12 \sum_c (e_{ijc} - \mu_{kc})^2 / \sigma_{kc}^2}
        W_k x_j + b, \qquad e_{ij} = \tanh(B (d_i^{-1/2}, d_j^{-1/2}) + \beta)

    ``kernels`` is the number of Gaussians; ``dropout`` is applied to ``x``.
    """

    def __init__(self, channels: int, out_channels: int, *, kernels: int, dropout: float = 0.0) -> None:
        super().__init__()
        if kernels < 1:
            raise ValueError(f"MoNet needs at least one of `kernels`; got {kernels}.")
        self.project = Encoder(channels, (1 + kernels) * out_channels, dropout=dropout, bias=False)  # W_0 first
        self.coordinates = nn.Linear(2, 2)
        self.mu = nn.Parameter(torch.empty(kernels, 2))
        self.sigma = nn.Parameter(torch.empty(kernels, 2))
        self.bias = nn.Parameter(torch.zeros(out_channels))
        for weight in (*self.project.linear.weight.detach().chunk(1 + kernels), self.coordinates.weight, self.mu):
            xavier(weight)
        nn.init.ones_(self.sigma)

    def forward(self, x: Matrix, edges: Edges) -> Tensor:
        projected = self.project(x).unflatten(-1, (1 + len(self.mu), -1))  # (n, 1 + kernels, k)
        weights = self._gaussians(edges, projected.dtype) * mean_weights(edges, projected.dtype)[:, None]
        out: Tensor = projected[:, 0] + aggregate(weights, projected[:, 1:], edges).sum(1) + self.bias
        return out

    def relative_weights(self, x: Matrix, edges: Edges) -> Tensor:
        """Return the learned weights relative to their means, (m, h)."""
        weights = self._gaussians(edges, x.dtype)
        return weights / weights.mean(0)

    def _gaussians(self, edges: Edges, dtype: torch.dtype) -> Tensor:
        e = torch.tanh(self.coordinates(degree_coordinates(edges, dtype)))
        scaled = (e[:, None] - self.mu) / self.sigma  # (m, kernels, 2)
        return torch.exp(-0.5 * scaled.square().sum(-1))


@cached_per_graph
def degree_coordinates(edges: Edges, dtype: torch.dtype) -> Tensor:
    r"""Return MoNet's pseudo-coordinates :math:`(d_i^{-1/2}, d_j^{-1/2})` of each edge, (m, 2), d the degree."""
    received, sent = edges.in_degree()[edges.i], edges.out_degree()[edges.j]
    return torch.stack((received, sent), dim=1).to(dtype).rsqrt()


class SAGEMeanLayer(nn.Module):
    r"""GraphSAGE (Hamilton et al. 2017) with the mean of the neighbours.

    .. math:: F(X)_i = W x_i + V \operatorname{mean}_j x_j + b
    """

    def __init__(self, channels: int, out_channels: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.project = Encoder(channels, 2 * out_channels, dropout=dropout, bias=False)  # V above W
        self.bias = nn.Parameter(torch.zeros(out_channels))
        for weight in self.project.linear.weight.detach().chunk(2):
            xavier(weight)

    def forward(self, x: Matrix, edges: Edges) -> Tensor:
        neighbours, own = self.project(x).chunk(2, dim=-1)
        out: Tensor = own + aggregate(mean_weights(edges, neighbours.dtype), neighbours, edges) + self.bias
        return out


class SAGEMaxPoolLayer(nn.Module):
    r"""GraphSAGE with the channelwise maximum over the neighbours; zero without neighbours. P has ``pooled`` rows.

    .. math:: F(X)_i = W x_i + V \max_j \mathrm{ReLU}(P x_j + p) + b
    """

    def __init__(self, channels: int, out_channels: int, *, pooled: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.widths = [pooled, out_channels]
        self.project = Encoder(channels, pooled + out_channels, dropout=dropout, bias=False)  # P above W
        self.shift = nn.Parameter(torch.zeros(pooled))
        self.mix = nn.Linear(pooled, out_channels)
        for weight in (*self.project.linear.weight.detach().split(self.widths), self.mix.weight):
            xavier(weight)

    def forward(self, x: Matrix, edges: Edges) -> Tensor:
        values, own = self.project(x).split(self.widths, dim=-1)
        values = torch.relu(values + self.shift)
        sent = values.index_select(0, edges.j)
        zeros = torch.zeros_like(values)  # a lower bound of all values
        largest = zeros.scatter_reduce(0, edges.i[:, None].expand_as(sent), sent, "amax")
        out: Tensor = own + self.mix(largest)
        return out


@checked
def gcn(architecture: Architecture) -> LayeredNetwork:
    """Return a GCN; its authors' graph has ``Loops()``."""
    return LayeredNetwork(architecture, [GCNLayer(a, b, dropout=p) for a, b, p in architecture.layers])


@checked
def gat(
    architecture: Architecture, *, heads: int = 8, out_heads: int = 1, attention_dropout: float = 0.6
) -> LayeredNetwork:
    """Return a GAT with ELU; the last layer averages its ``out_heads``. Its authors' graph has ``Loops()``."""
    *hidden, (a, b, last) = architecture.layers
    layers = [GATLayer(c, d, heads=heads, dropout=p, attention_dropout=attention_dropout) for c, d, p in hidden]
    out = GATLayer(a, b, heads=out_heads, average=True, dropout=last, attention_dropout=attention_dropout)
    return LayeredNetwork(architecture, [*layers, out], F.elu)


@checked
def monet(architecture: Architecture, *, kernels: int = 2) -> LayeredNetwork:
    """Return a MoNet of ``kernels`` Gaussians in each layer."""
    layers = [MoNetLayer(a, b, kernels=kernels, dropout=p) for a, b, p in architecture.layers]
    return LayeredNetwork(architecture, layers)


@checked
def sage_mean(architecture: Architecture) -> LayeredNetwork:
    """Return a GraphSAGE of means."""
    return LayeredNetwork(architecture, [SAGEMeanLayer(a, b, dropout=p) for a, b, p in architecture.layers])


@checked
def sage_maxpool(architecture: Architecture) -> LayeredNetwork:
    """Return a GraphSAGE of maxima, as many as hidden channels."""
    width = architecture.width
    layers = [SAGEMaxPoolLayer(a, b, pooled=width, dropout=p) for a, b, p in architecture.layers]
    return LayeredNetwork(architecture, layers)
