"""Rows of different lengths: cut into chunks of bounded length, and ranked, without a loop over the rows."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

LONG = 128  # entries of a chunk: a few microseconds of work, and longer than most rows of most graphs
SHORT = {2**16: 16, 2**18: 32}  # of a chunk in a pattern of fewer entries, where long ones would leave the device idle


@dataclass(frozen=True, eq=False)
class RowChunks:
    """Rows of a sparse pattern cut into chunks: chunk p covers entries ``start[p]`` to ``stop[p]`` of row ``row[p]``.

    Every row has at least one chunk; an empty row has an empty one. The result of a row with one chunk is written in
    place: ``slot[p] = -1``. Each chunk of a longer row writes a partial result to its slot, and the slots
    ``split_ptr[s]`` to ``split_ptr[s + 1]`` are then combined, always in this order, into row ``split_row[s]``. All
    tensors are 32-bit.
    """

    row: Tensor  # (chunks,)
    start: Tensor  # (chunks,)
    stop: Tensor  # (chunks,)
    slot: Tensor  # (chunks,)
    split_row: Tensor  # (splits,)
    split_ptr: Tensor  # (splits + 1,)
    num_slots: int

    def __len__(self) -> int:
        return len(self.row)

    @property
    def bounds(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """``row``, ``start``, ``stop`` and ``slot`` of every chunk."""
        return self.row, self.start, self.stop, self.slot

    @cached_property
    def split_bounds(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """``row``, ``start``, ``stop`` and ``slot`` of the chunks that have a slot."""
        split = (self.slot >= 0).nonzero()[:, 0]
        return self.row[split], self.start[split], self.stop[split], self.slot[split]


def chunk_rows(ptr: Tensor, *, entries: int) -> RowChunks:
    """Cut the rows that ``ptr`` (rows + 1,) bounds, of so many ``entries`` in all."""
    length = min(LONG, *(short for limit, short in SHORT.items() if entries < limit), LONG)
    ptr = ptr.long()
    counts = ((ptr.diff() + length - 1) // length).clamp(min=1)
    row = torch.arange(len(counts), device=ptr.device).repeat_interleave(counts)
    place = torch.arange(len(row), device=ptr.device) - (counts.cumsum(0) - counts)[row]
    start = ptr[:-1][row] + length * place
    stop = torch.minimum(start + length, ptr[1:][row])
    split = counts > 1
    has_slot = split[row]
    slot = torch.where(has_slot, has_slot.cumsum(0) - 1, -1)
    slots = counts[split].cumsum(0)
    split_ptr = torch.cat((slots.new_zeros(1), slots))
    bounds = (row.int(), start.int(), stop.int(), slot.int())
    return RowChunks(*bounds, split.nonzero()[:, 0].int(), split_ptr.int(), int(split_ptr[-1]))


def largest_per_row(row: Tensor, value: Tensor, *, top: int) -> Tensor:
    """Return the places of the ``top`` largest values of each row, by row and descending; ties keep their order."""
    order = value.argsort(descending=True, stable=True)
    order = order[row[order].argsort(stable=True)]
    count = torch.bincount(row)
    rank = torch.arange(len(row), device=row.device) - (count.cumsum(0) - count)[row[order]]
    return order[rank < top]
