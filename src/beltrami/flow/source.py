"""The scalars of a flow: its rate alpha, its source beta z(0), its attachment to z(0)."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Rate(nn.Module):
    r"""A learnable rate of diffusion in (0, 1), :math:`\alpha = \mathrm{sigmoid}(\theta)`.

    Args:
        start: the rate to begin with.
    """

    def __init__(self, start: float = 0.5) -> None:
        super().__init__()
        if not 0 < start < 1:
            raise ValueError(
                f"Rate needs `start` strictly between 0 and 1; got {start}. For a rate of one, leave it out."
            )
        self.logit = nn.Parameter(torch.logit(torch.tensor(start)))

    def forward(self) -> Tensor:
        return torch.sigmoid(self.logit)


class Source(nn.Module):
    r"""A learnable source :math:`\beta z(0)`: it keeps feeding the start back in, against oversmoothing.

    Args:
        start: the value of beta to begin with.
    """

    def __init__(self, start: float = 0.0) -> None:
        super().__init__()
        self.beta = nn.Parameter(torch.tensor(float(start)))

    def forward(self, z0: Tensor) -> Tensor:
        return self.beta * z0


class Attachment(nn.Module):
    r"""A learnable attachment to the start, :math:`\lambda (z(0) - z)`, :math:`\lambda = \mathrm{softplus}(\theta)`.

    Where a source feeds the start in for ever, this holds the state near it; unlike a source, it has an energy that is
    bounded below, :math:`\tfrac\lambda2 \|z - z(0)\|^2`.

    Args:
        start: the value of lambda to begin with.
    """

    def __init__(self, start: float = 0.1) -> None:
        super().__init__()
        if not 0 < start < float("inf"):
            raise ValueError(f"Attachment needs a positive, finite `start`; got {start}. For none, leave it out.")
        self.theta = nn.Parameter(torch.tensor(start + math.log(-math.expm1(-start))))

    def forward(self) -> Tensor:
        return F.softplus(self.theta)
