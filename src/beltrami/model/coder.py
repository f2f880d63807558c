"""Encoders phi and psi, from inputs to the flow's coordinates, and the decoder xi, from z(T) to class scores."""

from typing import TypeAlias

import torch
from torch import Tensor, nn

from beltrami.graph import SparseMatrix
from beltrami.model.dropout import Dropout

Matrix: TypeAlias = Tensor | SparseMatrix
"""Values at the nodes (n, channels), dense or sparse."""


class Encoder(nn.Module):
    """phi or psi: dropout, then a linear map, or two with a ``hidden`` layer with ReLU, of this width.

    ``dropout`` applies to the input and the hidden layer, ``bias`` to the first map. (n, channels), dense or
    :class:`SparseMatrix` -> (n, out_channels).
    """

    def __init__(
        self, channels: int, out_channels: int, *, dropout: float = 0.0, hidden: int | None = None, bias: bool = True
    ) -> None:
        super().__init__()
        if hidden is not None and hidden < 1:
            raise ValueError(f"Encoder needs a `hidden` width of at least 1, or None for no layer; got {hidden}.")
        self.dropout = Dropout(dropout)
        self.linear = nn.Linear(channels, out_channels if hidden is None else hidden, bias=bias)
        self.second = None
        if hidden is not None:
            self.second = nn.Sequential(nn.ReLU(), Dropout(dropout), nn.Linear(hidden, out_channels))

    def forward(self, x: Matrix) -> Tensor:
        if isinstance(x, SparseMatrix):  # dropping a zero changes nothing
            out = x.with_values(self.dropout(x.values)) @ self.linear.weight.t()
            out = out if self.linear.bias is None else out + self.linear.bias
        else:
            out = self.linear(self.dropout(x))
        return out if self.second is None else self.second(out)


class Decoder(nn.Module):
    """xi: ReLU, dropout in training, then a linear map to class scores; (..., n, channels) -> (..., n, num_classes)."""

    def __init__(self, channels: int, num_classes: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.linear = nn.Linear(channels, num_classes)

    def forward(self, z: Tensor) -> Tensor:
        logits: Tensor = self.linear(self.dropout(torch.relu(z)))
        return logits
