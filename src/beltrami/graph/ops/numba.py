"""The sparse products on the CPU with all heads at once, or added to what is there: what numba makes of the loops.

The libraries take one head at a time, and each has to be copied out of its place among the others. Here a row's entries
are walked once and the heads, side by side in memory, with them. Threads share the rows; every row is summed in its
order, so that the same inputs give the same bits whatever their number.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from beltrami.graph.edges import Compressed
from beltrami.graph.jit import compiled

ENOUGH = 2**16  # multiplications that are worth a thread

fast: Callable[..., Any] = partial(compiled, fastmath={"reassoc", "contract"})


@fast
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


@fast
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


@fast
def _add_spmm(ptr, index, edge, values, dense, out, factor, first, last):  # type: ignore[no-untyped-def]
    width = dense.shape[1]
    for i in range(first, last):
        for entry in range(ptr[i], ptr[i + 1]):
            j, value = index[entry], factor * values[edge[entry]]
            for k in range(width):
                out[i, k] += value * dense[j, k]


@fast
def _add_pulled(ptr, index, edge, values, p, q, out, sums, factor, first, last):  # type: ignore[no-untyped-def]
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


def spmm(pattern: Compressed, values: Tensor, dense: Tensor) -> Tensor:
    """As the reference, with heads: (m, h), (c, h, k) -> (r, h, k)."""
    out = dense.new_empty(len(pattern.ptr) - 1, *dense.shape[1:])
    arrays = [_array(x) for x in (pattern.index, pattern.edge, values, dense, out)]
    _share(_spmm, pattern, arrays, work=len(pattern.index) * dense[:1].numel())
    return out


def sddmm(pattern: Compressed, left: Tensor, right: Tensor) -> Tensor:
    """As the reference, with heads: (r, h, k), (c, h, k) -> (m, h), in the pattern's order."""
    out = left.new_zeros(len(pattern.index), left.shape[1])
    if left.shape[2] == 0:
        return out
    arrays = [_array(x) for x in (pattern.index, left, right, out)]
    _share(_sddmm, pattern, arrays, work=len(pattern.index) * left[:1].numel())
    return out


def add_spmm(pattern: Compressed, values: Tensor, dense: Tensor, out: Tensor, factor: float) -> None:
    """Add the product, times the factor, to ``out``: (m,), (c, k), (r, k)."""
    arrays = [_array(x) for x in (pattern.index, pattern.edge, values, dense, out)]
    _share(_add_spmm, pattern, [*arrays, arrays[-1].dtype.type(factor)], work=len(pattern.index) * dense.shape[1])


def add_pulled(
    pattern: Compressed, values: Tensor, p: Tensor, q: Tensor, out: Tensor, sums: Tensor, factor: float
) -> None:
    """Add the product with ``p`` to ``out``, and the dot products across the entries to ``sums``, times the factor.

    (m,), (c, k), (r, k), (r, k), (m,); ``sums`` as ``values`` in the order of the edges.
    """
    if p.shape[1] == 0:
        return
    arrays = [_array(x) for x in (pattern.index, pattern.edge, values, p, q, out, sums)]
    _share(_add_pulled, pattern, [*arrays, arrays[-1].dtype.type(factor)], work=2 * len(pattern.index) * p.shape[1])


def _share(run: Callable[..., None], pattern: Compressed, arrays: list[Any], *, work: int) -> None:
    """Run on all rows, shared among threads by the number of their entries."""
    rows, ptr = len(pattern.ptr) - 1, pattern.ptr.numpy()
    threads = min(torch.get_num_threads(), max(1, work // ENOUGH))
    if threads == 1:
        run(ptr, *arrays, 0, rows)
        return
    bounds = [0, *(int(ptr.searchsorted(len(pattern.index) * t // threads)) for t in range(1, threads)), rows]
    jobs = [_pool().submit(run, ptr, *arrays, bounds[t], bounds[t + 1]) for t in range(threads)]
    for job in jobs:
        job.result()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(torch.get_num_threads(), thread_name_prefix="beltrami")


def _array(x: Tensor) -> Any:
    return x.detach().contiguous().numpy()
