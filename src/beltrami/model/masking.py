"""Keyed dropout in one sweep on the GPU, where the plain operations are thirty.

The mask is the one of ``beltrami.model.dropout``, bit for bit: here each number is hashed where it is needed, forwards
and again backwards, and nothing is stored.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd import Function
from triton import cdiv

BLOCK = 1024  # numbers of a program
FIRST: tl.constexpr = tl.constexpr(0x7FEB352D)
SECOND: tl.constexpr = tl.constexpr(0x846CA68B - 2**32)


@triton.jit
def _mixed(x):
    x = (x ^ ((x >> 16) & 0xFFFF)) * FIRST
    x = (x ^ ((x >> 15) & 0x1FFFF)) * SECOND
    return x ^ ((x >> 16) & 0xFFFF)


@triton.jit(do_not_specialize=["each", "count", "width", "least"])
def _mask(x, seed, calls, out, each, count, width, least, scale, rest, SHARED: tl.constexpr, B: tl.constexpr):
    """Runs of ``each`` numbers one after the other, ``count`` in all; SHARED: all of them read the same ``x``.

    Numbers are handed over in single precision: the factor is ``scale`` + ``rest``.
    """
    at = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    there = at < count
    run, within = at // each, at % each
    key = tl.load(seed + run, mask=there, other=0) ^ _mixed(tl.load(calls + run, mask=there, other=0))
    kept = _mixed(_mixed((within // width).to(tl.int32)) ^ _mixed(key)) >= least
    value = tl.load(x + (within if SHARED else at), mask=there, other=0.0)
    tl.store(out + at, tl.where(kept, value * scale + value * rest, 0.0).to(value.dtype), mask=there)


def masked(x: Tensor, seed: Tensor, calls: Tensor, *, least: int, scale: float, width: int) -> Tensor:
    """``x`` where a hash of place and key is at least ``least``, times ``scale``; ``width`` numbers share a place.

    Shapes:
        ``x`` (...), ``seed`` and ``calls`` () -> (...).
    """
    out: Tensor = _Masked.apply(x, seed, calls.clone(), least, scale, width)
    return out


class _Masked(Function):
    """Linear in ``x``: its derivative is itself."""

    @staticmethod
    def forward(x: Tensor, seed: Tensor, calls: Tensor, least: int, scale: float, width: int) -> Tensor:
        return _launch(x[None], seed[None], calls[None], least, scale, width)[0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, seed, calls, *ctx.how = inputs
        ctx.save_for_backward(seed, calls)

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor | None, ...]:
        return _Masked.apply(grad[0], *ctx.saved_tensors, *ctx.how), None, None, None, None, None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        x: Tensor,
        seed: Tensor,
        calls: Tensor,
        least: int,
        scale: float,
        width: int,
    ) -> tuple[Tensor, int]:
        x = x[None] if in_dims[0] is None else x.movedim(in_dims[0], 0)
        seed, calls = (
            key.expand(info.batch_size) if dim is None else key
            for key, dim in zip((seed, calls), in_dims[1:3], strict=True)
        )
        out: Tensor = _Side.apply(x, seed, calls, least, scale, width)
        return out, 0


class _Side(Function):
    """The same for runs side by side: (runs, ...) or, where all share it, (1, ...) -> (runs, ...)."""

    @staticmethod
    def forward(x: Tensor, seed: Tensor, calls: Tensor, least: int, scale: float, width: int) -> Tensor:
        return _launch(x, seed, calls, least, scale, width)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, seed, calls, *ctx.how = inputs
        ctx.shared = len(x) < len(seed)
        ctx.save_for_backward(seed, calls)

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor | None, ...]:
        out: Tensor = _Side.apply(grad[0], *ctx.saved_tensors, *ctx.how)
        return out.sum(0, keepdim=True) if ctx.shared else out, None, None, None, None, None


def _launch(x: Tensor, seed: Tensor, calls: Tensor, least: int, scale: float, width: int) -> Tensor:
    out = x.new_empty(len(seed), *x.shape[1:])
    if out.numel():
        each, single = out.numel() // len(seed), torch.tensor(scale, dtype=torch.float32).item()
        with torch.cuda.device_of(x):
            _mask[(cdiv(out.numel(), BLOCK),)](
                x.contiguous(), seed.contiguous(), calls.contiguous(), out,
                each, out.numel(), width, least, single, scale - single, SHARED=len(x) < len(seed), B=BLOCK,
            )  # fmt: skip
    return out
