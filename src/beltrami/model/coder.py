"""Encoders phi and psi, from inputs to the flow's coordinates, and the decoder xi, from its end to classes."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from beltrami.graph import Sparse


class Encoder(nn.Module):
    r"""phi or psi: dropout on the input, then a linear map. Sparse inputs stay sparse.

    Args:
        channels: width of the input.
        out_channels: width of its coordinates in the flow.
        dropout: share of the input's entries dropped while training.

    Shapes:
        (n, channels), dense or :class:`Sparse` -> (n, out_channels).
    """

    def __init__(self, channels: int, out_channels: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        check_dropout(dropout)
        self.dropout = dropout
        self.linear = nn.Linear(channels, out_channels)

    def forward(self, x: Tensor | Sparse) -> Tensor:
        if isinstance(x, Sparse):
            kept = x.drop(self.dropout) if self.training and self.dropout else x
            return kept @ self.linear.weight.t() + self.linear.bias
        out: Tensor = self.linear(F.dropout(x, self.dropout, self.training))
        return out


class Decoder(nn.Module):
    """xi: ReLU, dropout, then a linear map to class scores.

    Args:
        channels: width of the flow's state.
        num_classes: number of classes.
        dropout: share of the state's entries dropped while training.

    Shapes:
        (..., n, channels) -> (..., n, num_classes).
    """

    def __init__(self, channels: int, num_classes: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        check_dropout(dropout)
        self.dropout = dropout
        self.linear = nn.Linear(channels, num_classes)

    def forward(self, z: Tensor) -> Tensor:
        logits: Tensor = self.linear(F.dropout(torch.relu(z), self.dropout, self.training))
        return logits


def check_dropout(dropout: float) -> None:
    """Refuse what is no share of entries to drop."""
    if not 0 <= dropout < 1:
        raise ValueError(f"`dropout` must be at least 0 and below 1; got {dropout}.")
