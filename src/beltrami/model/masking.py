"""Triton kernel for the dropout of ``beltrami.model.coder``: one launch in place of thirty operations.

The mask is the same, bit for bit. It is computed in the forward and again in the backward pass, and never stored.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd import Function
from triton import cdiv

BLOCK = 1024  # entries per program
FIRST: tl.constexpr = tl.constexpr(0x7FEB352D)
SECOND: tl.constexpr = tl.constexpr(0x846CA68B - 2**32)


@triton.jit
def _hash32(x):
    x = (x ^ ((x >> 16) & 0xFFFF)) * FIRST
    x = (x ^ ((x >> 15) & 0x1FFFF)) * SECOND
    return x ^ ((x >> 16) & 0xFFFF)


@triton.jit(do_not_specialize=["each", "count", "width", "threshold"])
def _mask(x, seed, calls, out, each, count, width, threshold, scale, rest, SHARED: tl.constexpr, B: tl.constexpr):
    """Mask consecutive models of ``each`` entries, ``count`` in all, times ``scale`` + ``rest``, both in single
    precision; SHARED: all models read the same ``x``."""
    at = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    inside = at < count
    model, within = at // each, at % each
    key = tl.load(seed + model, mask=inside, other=0) ^ _hash32(tl.load(calls + model, mask=inside, other=0))
    kept = _hash32(_hash32((within // width).to(tl.int32)) ^ _hash32(key)) >= threshold
    value = tl.load(x + (within if SHARED else at), mask=inside, other=0.0)
    tl.store(out + at, tl.where(kept, value * scale + value * rest, 0.0).to(value.dtype), mask=inside)


def masked(x: Tensor, seed: Tensor, calls: Tensor, *, threshold: int, scale: float, width: int) -> Tensor:
    """Return ``x`` (...) times ``scale`` where the hash of index and key is at least ``threshold``, else zero.

    ``width`` consecutive entries share an index; ``seed`` and ``calls`` are scalars.
    """
    out: Tensor = _Masked.apply(x[None], seed[None], calls.clone()[None], threshold, scale, width)
    return out.squeeze(0)


class _Masked(Function):
    """The masks of stacked models, linear in ``x``: (models, ...), or (1, ...) if shared -> (models, ...)."""

    @staticmethod
    def forward(x: Tensor, seed: Tensor, calls: Tensor, threshold: int, scale: float, width: int) -> Tensor:
        out = x.new_empty(len(seed), *x.shape[1:])
        if out.numel():
            each, single = out.numel() // len(seed), torch.tensor(scale, dtype=torch.float32).item()
            with torch.cuda.device_of(x):
                _mask[(cdiv(out.numel(), BLOCK),)](
                    x.contiguous(), seed.contiguous(), calls.contiguous(), out,
                    each, out.numel(), width, threshold, single, scale - single, SHARED=len(x) < len(seed), B=BLOCK,
                )  # fmt: skip
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, seed, calls, *ctx.settings = inputs
        ctx.shared = len(x) < len(seed)
        ctx.save_for_backward(seed, calls)

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor | None, ...]:
        out: Tensor = _Masked.apply(grad[0], *ctx.saved_tensors, *ctx.settings)
        return out.sum(0, keepdim=True) if ctx.shared else out, None, None, None, None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], x: Tensor, seed: Tensor, calls: Tensor, *settings: float
    ) -> tuple[Tensor, int]:
        """Stack the batch, of one model each, as models."""
        x = x if in_dims[0] is None else x.movedim(in_dims[0], 0).squeeze(1)
        seed, calls = (
            key.expand(info.batch_size) if dim is None else key.movedim(dim, 0).squeeze(1)
            for key, dim in zip((seed, calls), in_dims[1:3], strict=True)
        )
        out: Tensor = _Masked.apply(x, seed, calls, *settings)
        return out[:, None], 0
