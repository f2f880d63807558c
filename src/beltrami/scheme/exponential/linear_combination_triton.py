"""Linear combinations on the GPU: every vector is read once, for all times at once.

Libraries for matrices are made for matrices that are not a few rows by millions of columns. Here a program takes a tile
of the states of a run and goes through the vectors. Dot products leave a sum a tile, added up in their order.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton import cdiv, next_power_of_2

TIMES = 32  # of a tile; more of them take several programs
TILE = 4096  # numbers of a tile: times and places
WARPS = 4


@triton.jit(do_not_specialize=["terms", "times"])
def _combine(
    start, d, block, out, size, stride, terms, times, run_stride, time_stride,
    FRESH: tl.constexpr, J: tl.constexpr, B: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """FRESH: begin with ``start``, else with what ``out`` holds."""
    place, run = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B), tl.program_id(1).to(tl.int64)
    time = tl.program_id(2) * J + tl.arange(0, J)
    inside, there = place < size, time < times
    both = there[:, None] & inside[None, :]
    whole = out + run * (times + 1) * size
    target = whole + (time + 1).to(tl.int64)[:, None] * size + place[None, :]
    if FRESH:
        y = tl.load(start + run * size + place, mask=inside, other=0.0)
        if tl.program_id(2) == 0:
            tl.store(whole + place, y, mask=inside)
        acc = tl.zeros((J, B), SUM) + y.to(SUM)[None, :]
    else:
        acc = tl.load(target, mask=both, other=0.0).to(SUM)
    weights, vector = d + run * run_stride + time * time_stride, block + run * size + place
    for k in range(terms):
        w = tl.load(vector, mask=inside, other=0.0).to(SUM)
        vector += stride  # by and by, since a product with k may be more than 32 bits hold
        acc += tl.load(weights + k, mask=there, other=0.0).to(SUM)[:, None] * w[None, :]
    tl.store(target, acc, mask=both)


@triton.jit(do_not_specialize=["terms", "times"])
def _dots(
    g, block, out, size, stride, terms, times, run_stride, time_stride,
    J: tl.constexpr, B: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    place, run = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B), tl.program_id(1).to(tl.int64)
    time = (tl.program_id(2) * J + tl.arange(0, J)).to(tl.int64)
    inside, there = place < size, time < times
    both = there[:, None] & inside[None, :]
    x = tl.load(g + run * run_stride + time[:, None] * time_stride + place[None, :], mask=both, other=0.0).to(SUM)
    tile, vector = run * tl.num_programs(0) + tl.program_id(0), block + run * size + place
    for k in range(terms):
        w = tl.load(vector, mask=inside, other=0.0).to(SUM)
        vector += stride
        tl.store(out + (tile * times + time) * terms + k, tl.sum(x * w[None, :], 1), mask=there)


def combine(ys: Tensor, y0: Tensor | None, d: Tensor, block: Tensor) -> None:
    """Write y0, and y0 + sum_k d_jk w_k at each time j, into ``ys``; without y0 the sum is added to what is there.

    Shapes:
        ``ys`` (runs, 1 + j, n, d), ``y0`` (runs, n, d), ``d`` (runs, j, k), ``block`` (k, runs, n, d).
    """
    terms, runs = block.shape[:2]
    size, times = ys[0, 0].numel(), d.shape[1]
    if ys.numel() == 0:
        return
    d = d if d.stride(2) == 1 else d.contiguous()
    j, b = _tile(times)
    start = ys if y0 is None else y0.contiguous()
    with torch.cuda.device_of(ys):
        _combine[cdiv(size, b), runs, cdiv(times, j)](
            start, d, block, ys, size, block.stride(0), terms, times, d.stride(0), d.stride(1),
            FRESH=y0 is not None, J=j, B=b, SUM=_wide(ys), num_warps=WARPS,
        )  # fmt: skip


def dots(g: Tensor, block: Tensor) -> Tensor:
    """<g_j, w_k> of every run, (runs, j, n, d), (k, runs, n, d) -> (runs, j, k)."""
    runs, times = g.shape[:2]
    terms, size = len(block), block[0, 0].numel()
    g = g if g[0, 0].is_contiguous() else g.contiguous()
    j, b = _tile(times)
    tiles = cdiv(size, b)
    dtype = torch.float64 if g.dtype == torch.float64 else torch.float32
    partial = g.new_zeros(runs, tiles, times, terms, dtype=dtype)
    if g.numel():
        with torch.cuda.device_of(g):
            _dots[tiles, runs, cdiv(times, j)](
                g, block, partial, size, block.stride(0), terms, times, g.stride(0), g.stride(1),
                J=j, B=b, SUM=_wide(g), num_warps=WARPS,
            )  # fmt: skip
    return partial.sum(1).to(g.dtype)


def _tile(times: int) -> tuple[int, int]:
    """Times and places of a tile."""
    j = min(int(next_power_of_2(max(times, 1))), TIMES)
    return j, max(1, min(TILE // j, TILE // 4))


def _wide(tensor: Tensor) -> tl.dtype:
    return tl.float64 if tensor.dtype == torch.float64 else tl.float32
