"""Encoders phi and psi, from inputs to the flow's coordinates, the decoder xi, from z(T) to scores, and dropout."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.compiler import is_compiling
from torch.library import custom_op

from beltrami.arguments import Count, checked
from beltrami.graph import SparseMatrix
from beltrami.graph.ops.dispatch import has_kernel

Matrix: TypeAlias = Tensor | SparseMatrix
"""Values at the nodes (n, channels), dense or sparse."""

FIRST, SECOND = 0x7FEB352D, 0x846CA68B - 2**32  # multipliers of a low-bias 32-bit hash, as signed integers


@checked
class Encoder(nn.Module):
    """phi or psi: dropout, then a linear map, or two with a ``hidden`` layer with ReLU, of this width.

    ``dropout`` applies to the input and the hidden layer, ``bias`` to the first map. (n, channels), dense or
    :class:`SparseMatrix` -> (n, out_channels).
    """

    def __init__(
        self,
        channels: Count,
        out_channels: Count,
        *,
        dropout: float = 0.0,
        hidden: Count | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
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


@checked
class Decoder(nn.Module):
    """xi: ReLU, dropout in training, then a linear map to class scores; (..., n, channels) -> (..., n, num_classes)."""

    def __init__(self, channels: Count, num_classes: Count, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.linear = nn.Linear(channels, num_classes)

    def forward(self, z: Tensor) -> Tensor:
        logits: Tensor = self.linear(self.dropout(torch.relu(z)))
        return logits


@checked
class Dropout(nn.Module):
    """Set entries, or whole rows if ``rows``, to zero with probability ``p`` in training, and scale up the others.

    A mask is a hash of the module's seed, drawn at construction, and of its number of calls: it does not depend on the
    device or on other random numbers. Models trained together (``torch.func.vmap`` over stacked seeds) or in a CUDA
    graph thus drop the same entries as one model trained alone without a graph.
    """

    seed: Tensor
    calls: Tensor

    def __init__(self, p: float = 0.0, *, rows: bool = False) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"`dropout` must be at least 0 and below 1; got {p}.")
        self.p, self.rows = p, rows
        self.register_buffer("seed", _new_seed(), persistent=False)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int32), persistent=False)
        self._numbers: Tensor | None = None
        self._indices: tuple[tuple[int, ...], Tensor] | None = None
        self._counted = False  # whether the call was counted before its rows are passed in parts

    def number_rows(self, numbers: Tensor | None) -> None:
        """Take inputs as the rows of these numbers of a larger tensor: masks are then the rows of its mask."""
        self._numbers, self._indices = numbers, None

    @contextmanager
    def at_rows(self, rows: Tensor) -> Iterator[None]:
        """Treat inputs in a block as the ``rows`` (r,) of the input of the last call, which is not counted again."""
        self.number_rows(rows)
        self._counted = True
        try:
            yield
        finally:
            self.number_rows(None)
            self._counted = False

    def count_call(self) -> None:
        """Count a call whose rows are passed in parts (:meth:`at_rows`)."""
        if self.training and self.p:
            self.calls.add_(1)

    def reset_parameters(self) -> None:
        """Draw a new seed, with which the masks begin again."""
        self.seed.copy_(_new_seed())
        self.calls.zero_()

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        threshold = round((self.p - 0.5) * 2**32)  # a share p of the signed 32-bit integers lies below it
        if not self._counted:
            self.calls.add_(1)
        if has_kernel(x) and self._numbers is None and not is_compiling():
            from beltrami.model.masking import masked

            width = math.prod(x.shape[1:]) if self.rows else 1
            return masked(x, self.seed, self.calls, threshold=threshold, scale=1 / (1 - self.p), width=width)
        shape = (x.shape[0], *(1 for _ in x.shape[1:])) if self.rows else tuple(x.shape)
        if is_compiling():
            kept = dropout_mask(self.seed, self.calls, shape, threshold)
        else:
            kept = hash32(self._hashed_indices(shape, x.device) ^ hash32(self.seed ^ hash32(self.calls))) >= threshold
        out: Tensor = x * (kept.to(x.dtype) * (1 / (1 - self.p)))
        return out

    def _hashed_indices(self, shape: tuple[int, ...], device: torch.device) -> Tensor:
        if self._indices is None or self._indices[0] != shape or self._indices[1].device != device:
            if self._numbers is None:
                index = torch.arange(math.prod(shape), dtype=torch.int32, device=device)
            else:
                width = math.prod(shape[1:])
                index = (self._numbers[:, None] * width + torch.arange(width, device=device)).int()
            self._indices = (shape, hash32(index).reshape(shape))
        return self._indices[1]

    def extra_repr(self) -> str:
        return f"p={self.p}" + (", rows=True" if self.rows else "")


def reset_parameters(module: nn.Module) -> None:
    """Draw the parameters of all parts of a module again, by their ``reset_parameters``; inner parts first, because a
    part may initialise those inside it."""
    for part in module.children():
        reset_parameters(part)
        reset = getattr(part, "reset_parameters", None)
        if reset is not None:
            reset()


def _new_seed() -> Tensor:
    return torch.randint(-(2**31), 2**31, (), dtype=torch.int32)


def hash32(x: Tensor) -> Tensor:
    """Return a bijective hash of 32-bit integers in which every output bit depends on all input bits."""
    x = (x ^ ((x >> 16) & 0xFFFF)) * FIRST
    x = (x ^ ((x >> 15) & 0x1FFFF)) * SECOND
    return x ^ ((x >> 16) & 0xFFFF)


@custom_op("beltrami::dropout_mask", mutates_args=())
def dropout_mask(seed: Tensor, calls: Tensor, shape: Sequence[int], threshold: int) -> Tensor:
    """Return the mask of ``Dropout``. An operator of its own: torch.compile may compute plain operations again in the
    backward pass, when the number of calls has changed."""
    indices = torch.arange(math.prod(shape), dtype=torch.int32, device=seed.device).reshape(shape)
    return hash32(hash32(indices) ^ hash32(seed ^ hash32(calls))) >= threshold


@dropout_mask.register_fake
def _(seed: Tensor, calls: Tensor, shape: Sequence[int], threshold: int) -> Tensor:
    return seed.new_empty(shape, dtype=torch.bool)
