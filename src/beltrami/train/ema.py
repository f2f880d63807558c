"""A running average of weights."""

from collections.abc import Mapping

import torch
from torch import Tensor


class ExponentialMovingAverage:
    r"""Weights that follow others, :math:`\bar w \leftarrow \bar w + p (w - \bar w)`, and take them over at first.

    What is no floating number is taken over every time.

    Args:
        own: the tensors that follow, by name.
        others: those followed, of the same names.
        decay: 1 - p.
    """

    def __init__(self, own: Mapping[str, Tensor], others: Mapping[str, Tensor], *, decay: float) -> None:
        self.pairs = [(tensor, others[name]) for name, tensor in own.items()]
        self.decay = decay
        example = next(tensor for tensor, _ in self.pairs if tensor.is_floating_point())
        self.pace = torch.ones((), dtype=example.dtype, device=example.device)  # there, for a recorded step to read

    @property
    def tensors(self) -> list[Tensor]:
        """Those that follow."""
        return [own for own, _ in self.pairs]

    def begin(self, step: int) -> None:
        """Before a step, counted from 1."""
        self.pace.fill_(1.0 if step == 1 else 1.0 - self.decay)

    @torch.no_grad()
    def __call__(self) -> None:
        for own, other in self.pairs:
            if own.is_floating_point():
                own.lerp_(other, self.pace)
            else:
                own.copy_(other)
