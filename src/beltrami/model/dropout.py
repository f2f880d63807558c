r"""Dropout whose masks are a function of a key and of nothing else.

A mask depends on the seed that the module drew when it was made and on how often it has been called: not on the device,
nor on what else draws random numbers. Runs trained side by side (``torch.func.vmap`` over stacked seeds) thus drop
what they would have dropped alone, and a recorded CUDA graph what it would have dropped unrecorded.
"""

import math

import torch
from torch import Tensor, nn

from beltrami.graph.ops.dispatch import has_kernel

FIRST, SECOND = 0x7FEB352D, 0x846CA68B - 2**32  # multipliers of a 32-bit hash of low bias, as signed integers


class Dropout(nn.Module):
    """Zero each entry with probability ``p`` while training, and scale up the others.

    Args:
        p: in [0, 1).
        rows: drop whole rows in place of entries.

    Shapes:
        (...) -> (...).
    """

    seed: Tensor
    calls: Tensor

    def __init__(self, p: float = 0.0, *, rows: bool = False) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"`dropout` must be at least 0 and below 1; got {p}.")
        self.p, self.rows = p, rows
        self.register_buffer("seed", torch.randint(-(2**31), 2**31, (), dtype=torch.int32), persistent=False)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int32), persistent=False)
        self._places: tuple[tuple[int, ...], Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        self.calls.add_(1)
        least = round((self.p - 0.5) * 2**32)  # of 2^32 numbers, the share p lies below it
        if has_kernel(x):
            from beltrami.model.masking import masked

            width = math.prod(x.shape[1:]) if self.rows else 1
            return masked(x, self.seed, self.calls, least=least, scale=1 / (1 - self.p), width=width)
        shape = (x.shape[0], *(1 for _ in x.shape[1:])) if self.rows else tuple(x.shape)
        kept = mixed(self._hashed_places(shape, x.device) ^ mixed(self.seed ^ mixed(self.calls)))
        return x * ((kept >= least).to(x.dtype) * (1 / (1 - self.p)))

    def _hashed_places(self, shape: tuple[int, ...], device: torch.device) -> Tensor:
        """A number for every place, the same at each call and so computed once."""
        if self._places is None or self._places[0] != shape or self._places[1].device != device:
            count = math.prod(shape)
            self._places = (shape, mixed(torch.arange(count, dtype=torch.int32, device=device)).reshape(shape))
        return self._places[1]

    def extra_repr(self) -> str:
        return f"p={self.p}" + (", rows=True" if self.rows else "")


def mixed(x: Tensor) -> Tensor:
    """A one-to-one map of the 32-bit integers in which every bit depends on all others."""
    x = (x ^ ((x >> 16) & 0xFFFF)) * FIRST
    x = (x ^ ((x >> 15) & 0x1FFFF)) * SECOND
    return x ^ ((x >> 16) & 0xFFFF)
