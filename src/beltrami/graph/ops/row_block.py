"""Consecutive rows of a sparse matrix as a unit of work, and the product of such a block with a dense matrix."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from beltrami.graph.edges import Compressed
from beltrami.graph.ops import dispatch

LONG = 1024  # entries of a row that one program of a GPU sums; longer rows are cut into parts
Scaled = tuple[float, Tensor]  # a coefficient and the states that it multiplies


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Rows ``start`` to ``stop`` of a sparse pattern: entries ``ptr[r]`` to ``ptr[r + 1]`` of ``index`` are the columns
    of row ``start + r``. Both are 32-bit and on the device of the products.

    ``parts`` is None if no row is long. Else it holds the bounds of the parts of rows, (parts + 1,), and the bounds of
    each row among the parts, (rows + 1,).
    """

    start: int
    stop: int
    ptr: Tensor
    index: Tensor
    parts: tuple[Tensor, Tensor] | None = None

    @property
    def rows(self) -> slice:
        return slice(self.start, self.stop)

    @cached_property
    def pattern(self) -> Compressed:
        """The same rows as the sparse products of a whole graph take them, whose entries are numbered in order."""
        return Compressed(
            self.ptr, self.index, torch.arange(len(self.index), dtype=torch.int32, device=self.ptr.device)
        )

    @cached_property
    def receivers(self) -> Tensor:
        """The row of each entry among all rows of the graph, 64-bit."""
        return self.pattern.row.long() + self.start


@dataclass(frozen=True, eq=False)
class RowTerms:
    r"""The terms of :math:`c\, s_i (\sum_j a_{ij} y_j + l_i y_i) + k\, b_i + d\, g_i` for the rows i of a block.

    ``a`` (entries,), None for one everywhere; ``own`` (rows, k) is y at the rows; ``diagonal`` l and ``scale`` s
    (rows,); c is ``factor``; ``previous`` is (k, b) and ``cotangent`` is (d, g).
    """

    a: Tensor | None
    own: Tensor
    diagonal: Tensor | None = None
    scale: Tensor | None = None
    factor: float = 1.0
    previous: Scaled | None = None
    cotangent: Scaled | None = None


def write_rows(block: RowBlock, out: Tensor, y: Tensor, terms: RowTerms) -> None:
    """Write the sum of the terms at the rows of a block into ``out`` (rows, k), which may be the tensor b of
    ``previous``. ``y`` is (n, k). The entries of a row are summed in a fixed order."""
    if dispatch.has_kernel(out):
        from beltrami.graph.ops.triton import row_block_step

        row_block_step.step(block, out, y, terms)
        return
    a = y.new_ones(len(block.index)) if terms.a is None else terms.a.to(y.dtype)
    total = dispatch.spmm(block.pattern, a[:, None], y[:, None])[:, 0]
    if terms.diagonal is not None:
        total.addcmul_(terms.diagonal[:, None], terms.own)
    if terms.scale is not None:
        total.mul_(terms.scale[:, None])
    total.mul_(terms.factor)
    for term in (terms.previous, terms.cotangent):
        if term is not None:
            total.add_(term[1], alpha=term[0])
    out.copy_(total)


def cut_long_rows(ptr: Tensor, *, longest: int = 0) -> tuple[Tensor, Tensor] | None:
    """Return the bounds of parts of at most ``longest`` entries of the rows that ``ptr`` (rows + 1,) bounds, and the
    bounds of the rows among the parts; None if no row is longer. On the CPU, without a loop over rows."""
    longest = longest or LONG
    counts = ((ptr.diff().long() + longest - 1) // longest).clamp(min=1)
    if not len(counts) or int(counts.max()) == 1:
        return None
    first = counts.cumsum(0) - counts
    row = torch.arange(len(counts)).repeat_interleave(counts)
    starts = ptr[:-1].long()[row] + longest * (torch.arange(len(row)) - first[row])
    bounds = torch.cat((starts, ptr[-1:].long()))
    return bounds.int(), torch.cat((first, counts.sum()[None])).int()
