"""The scalars of a flow: its rate alpha and its source beta z(0)."""

import torch
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
