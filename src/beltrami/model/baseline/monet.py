"""MoNet, mixtures of Gaussians on pseudo-coordinates (Monti et al. 2017)."""

import torch
from torch import Tensor, nn

from beltrami.diffusivity import xavier
from beltrami.graph import Edges, SparseMatrix, aggregate
from beltrami.model.baseline.base import Attentive, Layered
from beltrami.model.baseline.frame import Frame
from beltrami.model.baseline.weight import degree_coordinates, mean
from beltrami.model.coder import Encoder


class GaussianMixtureLayer(Attentive):
    r"""Neighbours weighed by Gaussians of where they lie, each with its own map.

    .. math:: F(X)_i = W_0 x_i + \operatorname{mean}_j \sum_k e^{-\frac12 \sum_c (e_{ijc} - \mu_{kc})^2 / \sigma_{kc}^2}
        W_k x_j + b, \qquad e_{ij} = \tanh(B (d_i^{-1/2}, d_j^{-1/2}) + \beta)

    Args:
        channels: width of ``x``.
        out_channels: width of the result.
        kernels: number of Gaussians.
        dropout: share of ``x`` dropped while training.
    """

    def __init__(self, channels: int, out_channels: int, *, kernels: int, dropout: float = 0.0) -> None:
        super().__init__()
        if kernels < 1:
            raise ValueError(f"Mixture needs one of `kernels` or more; got {kernels}.")
        self.project = Encoder(channels, (1 + kernels) * out_channels, dropout=dropout, bias=False)  # W_0 first
        self.place = nn.Linear(2, 2)
        self.mu = nn.Parameter(torch.empty(kernels, 2))
        self.sigma = nn.Parameter(torch.empty(kernels, 2))
        self.bias = nn.Parameter(torch.zeros(out_channels))
        for weight in (*self.project.linear.weight.detach().chunk(1 + kernels), self.place.weight, self.mu):
            xavier(weight)
        nn.init.ones_(self.sigma)

    def forward(self, x: Tensor | SparseMatrix, edges: Edges) -> Tensor:
        projected = self.project(x).unflatten(-1, (1 + len(self.mu), -1))  # (n, 1 + kernels, k)
        weights = self._gaussians(edges, projected.dtype) * mean(edges, projected.dtype)[:, None]
        out: Tensor = projected[:, 0] + aggregate(weights, projected[:, 1:], edges).sum(1) + self.bias
        return out

    def relative_weights(self, x: Tensor | SparseMatrix, edges: Edges) -> Tensor:
        weights = self._gaussians(edges, x.dtype)
        return weights / weights.mean(0)

    def _gaussians(self, edges: Edges, dtype: torch.dtype) -> Tensor:
        places = torch.tanh(self.place(degree_coordinates(edges, dtype)))
        scaled = (places[:, None] - self.mu) / self.sigma  # (m, kernels, 2)
        return torch.exp(-0.5 * scaled.square().sum(-1))


def monet(frame: Frame, *, kernels: int = 2) -> Layered:
    """Mixtures with ReLU in between."""
    layers = [GaussianMixtureLayer(a, b, kernels=kernels, dropout=share) for a, b, share in frame.layers]
    return Layered(frame, layers)
