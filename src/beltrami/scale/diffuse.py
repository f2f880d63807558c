"""Diffuse the columns of an array that need not fit into memory: exp(t (P - I)) x at several times, to files."""

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from beltrami.arguments import DeviceName, NotNegative, Positive, checked
from beltrami.data.array_file import Array, new_array
from beltrami.data.graph_folder import GraphFolder
from beltrami.errors import DataError
from beltrami.graph import Edges
from beltrami.scale.block_matrix import BlockMatrix, random_walk
from beltrami.scale.column_blocks import column_ranges
from beltrami.scale.edge_blocks import compressed_rows
from beltrami.scale.memory_plan import MemoryNeed, MemoryPlan, itemsize, plan_memory
from beltrami.scheme.exponential.integrator import EXPECTED_GROWTH, LARGEST_GROWTH, check_terms, coefficients
from beltrami.scheme.exponential.polynomial import Chebyshev, Expansion, Taylor

LARGEST_SLOPE = 2.0  # of (P - I) y relative to y, in the largest norm
READ_ROWS = 2**14  # rows of an array that are read or written at once
CHECK_EVERY = 2  # terms between two checks of the error bound, once the expected number is reached


@checked
def diffuse_columns(
    graph: GraphFolder | Edges,
    x: Array,
    *,
    times: Sequence[Positive],
    out: Sequence[Path],
    rtol: Positive,
    memory: int | None = None,
    device: DeviceName = "cpu",
    loops: NotNegative = 1.0,
) -> float:
    r"""Write :math:`e^{t (P - I)} x` at each of the ``times`` to a file and return a bound of the relative error.

    P is the transition matrix of the random walk on the graph with a self-loop of weight ``loops`` at every node, as in
    our models; edge weights count. The error of a column is at most the bound times its largest value, and the bound at
    most ``rtol``; round-off is not included.

    Columns are independent, so that blocks of them pass through the device, and edges in blocks of rows where they do
    not fit. The largest tensors are ``len(times) + 2`` vectors of n numbers for each column of a block.

    Args:
        graph: a graph in a folder or in memory.
        x: (n, d), an array in memory or a memory map.
        times: increasing.
        out: an npy file for each time, in single precision, or double for an ``x`` in double precision.
        rtol: of the largest value of each column.
        memory: bytes on the device; None for most of the free memory.
        device: where to compute.
        loops: weight of the self-loops; 0 for none, and nodes without edges keep their values.
    """
    _check(graph, x, times, out)
    if isinstance(graph, GraphFolder):
        graph.verify()
    dtype = torch.float64 if x.dtype == np.float64 else torch.float32
    weight = graph.weight.cpu().numpy() if isinstance(graph.weight, Tensor) else graph.weight
    plan = plan_diffusion(graph, columns=x.shape[1], times=len(times), dtype=dtype, memory=memory, device=device)
    edges = plan.place(graph, device)
    values = None if weight is None else edges.values_of(weight)
    matrix = random_walk(edges, loops=loops, dtype=dtype, weight=values)
    bound = 0.0
    with ExitStack() as stack:
        number = np.dtype(np.float64 if dtype == torch.float64 else np.float32)
        files = [stack.enter_context(new_array(path, shape=x.shape, dtype=number)) for path in out]
        for columns in column_ranges(x.shape[1], plan.columns):
            ys, found = exponential(matrix, partial(_read, x, columns, dtype, device), times=times, rtol=rtol)
            bound = max(bound, found)
            for file in files:
                _write(file, columns, ys.pop(0))  # the plan has no room for results of a block beside those of the next
    return bound


def plan_diffusion(
    graph: GraphFolder | Edges, *, columns: int, times: int, dtype: torch.dtype, memory: int | None, device: str
) -> MemoryPlan:
    """Return the plan of the memory of :func:`diffuse_columns`."""
    need = diffusion_need(times=times, dtype=dtype, weighted=graph.weight is not None, device=device)
    return plan_memory(compressed_rows(graph)[0], need, columns=columns, memory=memory, device=device)


def diffusion_need(*, times: int, dtype: torch.dtype, weighted: bool, device: str) -> MemoryNeed:
    """Return the bytes that :func:`diffuse_columns` needs; ``times`` is the number of times."""
    size = itemsize(dtype)
    on_cpu = device == "cpu"
    return MemoryNeed(
        node=12 + 4 * size,  # bounds and degrees of rows; scale and diagonal, and as much while they are computed
        column=(times + 2) * size,
        edge=8 if weighted else 4,
        staged=8 if weighted else 4,
        work=max(17, 4 + 3 * size) if on_cpu else 17,  # a search for self-loops; entry numbers and weights
        row_column=2 * size,
    )


@torch.no_grad()
def exponential(
    matrix: BlockMatrix, start: Callable[[], Tensor], *, times: Sequence[float], rtol: float
) -> tuple[list[Tensor], float]:
    """Return exp(t (B - I)) y0 at each time and a bound of the error of each column relative to its largest value.

    A sum in Chebyshev polynomials of B or, where their vectors grow, as on directed graphs, in powers of B. ``start``
    returns a new tensor y0 (n, k), which becomes the first of the sums.
    """
    bound = math.inf
    for expansion in (Chebyshev(), Taylor()):
        sums, bound = _sum(matrix, start(), expansion, times, rtol)
        if bound <= rtol:
            return sums, bound
        del sums
    raise DataError(
        f"the error bound of the diffusion is {bound:.3g}, above the tolerance {rtol:g}: allow a larger one."
    )


def _sum(
    matrix: BlockMatrix, y0: Tensor, expansion: Expansion, times: Sequence[float], rtol: float
) -> tuple[list[Tensor], float]:
    """Return the sums at all times and the error bound, infinite if it was not computed; ``y0`` is overwritten."""
    time, c = times[-1], expansion.factor
    terms = expansion.size(time)
    check_terms(terms, time)
    p, q = expansion.bounds(time, size=terms)
    d = coefficients(expansion, torch.ones(()), (0.0, *times), terms).tolist()
    expected = (LARGEST_SLOPE * time * EXPECTED_GROWTH * (p + q) <= rtol).nonzero()
    degree = int(expected[0]) if len(expected) else len(p) - 1
    w, before = torch.empty_like(y0), torch.empty_like(y0)
    matrix.advance(w, y0)
    w.sub_(y0)
    sums = [y0, *(y0.clone() for _ in times[1:])]
    largest, speed, bound = _norm(y0).clamp(min=torch.finfo(y0.dtype).tiny), _norm(w), math.inf
    for k in range(len(p)):
        for y, factors in zip(sums, d, strict=True):
            y.add_(w, alpha=factors[k])
        if k >= max(degree, 1) and ((k - degree) % CHECK_EVERY == 0 or k == len(p) - 1):
            last = _norm(w)
            bound = float((time * (float(p[k]) * last + float(q[k]) * _norm(before)) / largest).max())
            if not math.isfinite(bound):
                raise DataError(
                    "the array to diffuse holds values that are NaN or infinite: clean or impute them first."
                )
            if bound <= rtol or bool((last > LARGEST_GROWTH * speed).any()):
                break
        if k + 1 < len(p):
            matrix.advance(before, w, factor=c if k else 1.0, previous=(1.0 - c, before) if k and c != 1.0 else None)
            w, before = before, w
    return sums, bound


def _norm(w: Tensor) -> Tensor:
    """Return the largest size in each column, (k,)."""
    norm: Tensor = torch.linalg.vector_norm(w, math.inf, dim=0)
    return norm


def _check(graph: GraphFolder | Edges, x: Array, times: Sequence[float], out: Sequence[Path]) -> None:
    if x.ndim != 2 or x.dtype.kind not in "fiub" or len(x) != graph.num_nodes or not x.shape[1]:
        found = f"shape {x.shape} and type {x.dtype}"
        raise ValueError(f"`x` must hold numbers, (nodes, columns) for {graph.num_nodes} nodes; got {found}.")
    if not times or any(b <= a for a, b in pairwise(times)):
        raise ValueError(f"`times` must increase, and there must be one; got {list(times)}.")
    if len(out) != len(times):
        raise ValueError(f"`out` must name a file for each of {len(times)} times; got {len(out)}.")
    if wrong := [path for path in out if path.suffix != ".npy"]:
        raise ValueError(f"`out` must name npy files; got {wrong[0]}.")


def _read(x: Array, columns: slice, dtype: torch.dtype, device: str) -> Tensor:
    y = torch.empty(len(x), columns.stop - columns.start, dtype=dtype, device=device)
    for start in range(0, len(x), READ_ROWS):
        rows = slice(start, start + READ_ROWS)
        y[rows].copy_(torch.from_numpy(np.array(x[rows, columns])))
    return y


def _write(file: Array, columns: slice, y: Tensor) -> None:
    for start in range(0, len(file), READ_ROWS):
        rows = slice(start, start + READ_ROWS)
        file[rows, columns] = y[rows].cpu().numpy()
