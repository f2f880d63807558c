"""Numba backend: the products of ``dispatch`` on the CPU for all heads at once, and added in place to a tensor.

The vendor's library computes one head at a time, each copied from among the others. Here the entries of a row are read
once for all heads, which lie side by side in memory. Threads share the rows; the entries of a row are summed in order,
so that the result does not depend on the number of threads.
"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numba
import torch
from torch import Tensor

from beltrami.graph.edges import Compressed

WORK_PER_THREAD = 2**16  # multiplications that are worth a thread


def jit(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function at its first call to code that releases the GIL, cached on disk where a folder is writable."""
    try:
        return numba.njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:  # numba found no writable folder for its cache
        return numba.njit(nogil=True, **options)(function)


fast_jit = partial(jit, fastmath={"reassoc", "contract"}, error_model="numpy")  # no checks of divisors


@fast_jit
def _spmm(ptr, index, edge, values, dense, out, first, last):  # type: ignore[no-untyped-def]
    heads, width = dense.shape[1], dense.shape[2]
    for i in range(first, last):
        out[i] = 0
        for entry in range(ptr[i], ptr[i + 1]):
            j, e = index[entry], edge[entry]
            for h in range(heads):
                value = values[e, h]
                for k in range(width):
                    out[i, h, k] += value * dense[j, h, k]


@fast_jit
def _sddmm(ptr, index, left, right, out, first, last):  # type: ignore[no-untyped-def]
    heads, width = left.shape[1], left.shape[2]
    for i in range(first, last):
        for entry in range(ptr[i], ptr[i + 1]):
            j = index[entry]
            for h in range(heads):
                total = left[i, h, 0] * right[j, h, 0]
                for k in range(1, width):
                    total += left[i, h, k] * right[j, h, k]
                out[entry, h] = total


@fast_jit
def _add_spmm(ptr, index, edge, values, dense, out, factor, first, last):  # type: ignore[no-untyped-def]
    width = dense.shape[1]
    for i in range(first, last):
        for entry in range(ptr[i], ptr[i + 1]):
            j, value = index[entry], factor * values[edge[entry]]
            for k in range(width):
                out[i, k] += value * dense[j, k]


@fast_jit
def _add_gradients(ptr, index, edge, values, p, q, out, sums, factor, first, last):  # type: ignore[no-untyped-def]
    width = p.shape[1]
    for j in range(first, last):
        for entry in range(ptr[j], ptr[j + 1]):
            i, e = index[entry], edge[entry]
            value = factor * values[e]
            for k in range(width):
                out[j, k] += value * p[i, k]
            total = p[i, 0] * q[j, 0]
            for k in range(1, width):
                total += p[i, k] * q[j, k]
            sums[e] += factor * total


@fast_jit
def _unit(x, least, out, norm, first, last):  # type: ignore[no-untyped-def]
    for r in range(first, last):
        total = x.dtype.type(0)
        for k in range(x.shape[1]):
            total += x[r, k] * x[r, k]
        norm[r] = max(math.sqrt(total), least)
        inverse = x.dtype.type(1) / norm[r]
        for k in range(x.shape[1]):
            out[r, k] = x[r, k] * inverse


@fast_jit
def _unit_gradient(unit, norm, least, g, out, first, last):  # type: ignore[no-untyped-def]
    for r in range(first, last):
        along = g.dtype.type(0)
        for k in range(g.shape[1]):
            along += unit[r, k] * g[r, k]
        if norm[r] <= least:  # divided by a constant
            along *= 0
        inverse = g.dtype.type(1) / norm[r]
        for k in range(g.shape[1]):
            out[r, k] = (g[r, k] - along * unit[r, k]) * inverse


def spmm(pattern: Compressed, values: Tensor, dense: Tensor) -> Tensor:
    out = dense.new_empty(len(pattern.ptr) - 1, *dense.shape[1:])
    run(_spmm, pattern, pattern.index, pattern.edge, values, dense, out, work=dense[:1].numel())
    return out


def sddmm(pattern: Compressed, left: Tensor, right: Tensor) -> Tensor:
    out = left.new_zeros(len(pattern.index), left.shape[1])
    if left.shape[2] > 0:
        run(_sddmm, pattern, pattern.index, left, right, out, work=left[:1].numel())
    return out


def add_spmm(pattern: Compressed, values: Tensor, dense: Tensor, out: Tensor, factor: float) -> None:
    """Add the product, times the factor, to ``out``: (m,), (c, k), (r, k)."""
    tensors = (pattern.index, pattern.edge, values, dense, out)
    run(_add_spmm, pattern, *tensors, _scalar(factor, out), work=dense.shape[1])


def add_gradients(
    pattern: Compressed, values: Tensor, p: Tensor, q: Tensor, out: Tensor, sums: Tensor, factor: float
) -> None:
    """Add the product with ``p`` to ``out``, and the dot products of p and q at each entry to ``sums``, times factor.
    (m,), (c, k), (r, k), (r, k), (m,); ``sums`` and ``values`` in the order of the edges."""
    if p.shape[1] > 0:
        tensors = (pattern.index, pattern.edge, values, p, q, out, sums)
        run(_add_gradients, pattern, *tensors, _scalar(factor, out), work=2 * p.shape[1])


def unit(x: Tensor, least: float) -> tuple[Tensor, Tensor]:
    """Vectors along the last axis divided by their norms, which are at least ``least``, and the norms."""
    out, norm = torch.empty_like(x), x.new_empty(x.shape[:-1])
    rows, work = norm.numel(), 2 * x.shape[-1]
    run_rows(_unit, rows, x.view(rows, -1), _scalar(least, x), out.view(rows, -1), norm.view(-1), work=work)
    return out, norm


def unit_gradient(unit: Tensor, norm: Tensor, g: Tensor, least: float) -> Tensor:
    out, rows, work = torch.empty_like(g), norm.numel(), 2 * g.shape[-1]
    tensors = (unit.view(rows, -1), norm.view(-1), _scalar(least, g), g.view(rows, -1), out.view(rows, -1))
    run_rows(_unit_gradient, rows, *tensors, work=work)
    return out


def run(loop: Callable[..., None], pattern: Compressed, *arguments: Tensor | float, work: int) -> None:
    """Run a loop over all rows, divided among threads by their number of entries; ``work`` is that of one entry. The
    loop gets the pattern's pointers, the arguments (tensors as arrays), the first row and the one after the last."""
    rows, entries, ptr = len(pattern.ptr) - 1, len(pattern.index), pattern.ptr.numpy()
    threads = _threads(entries * work)
    bounds = [0, *(int(ptr.searchsorted(entries * t // threads)) for t in range(1, threads)), rows]
    _run_parts(loop, (pattern.ptr, *arguments), bounds)


def run_rows(loop: Callable[..., None], rows: int, *arguments: Tensor | float, work: int) -> None:
    """Run a loop over rows of equal length, divided among threads; ``work`` is that of one row."""
    threads = _threads(rows * work)
    _run_parts(loop, arguments, [rows * t // threads for t in range(threads + 1)])


def _threads(work: int) -> int:
    return min(torch.get_num_threads(), max(1, work // WORK_PER_THREAD))


def _run_parts(loop: Callable[..., None], arguments: Sequence[Tensor | float], bounds: Sequence[int]) -> None:
    """Run a loop between each bound and the next: the first part here, the others in other threads."""
    given = [x.detach().contiguous().numpy() if isinstance(x, Tensor) else x for x in arguments]
    jobs = [_pool().submit(loop, *given, *part) for part in list(pairwise(bounds))[1:]]
    loop(*given, bounds[0], bounds[1])
    for job in jobs:
        job.result()


def _scalar(value: float, like: Tensor) -> Any:
    return like.detach().numpy().dtype.type(value)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(torch.get_num_threads(), thread_name_prefix="beltrami")
