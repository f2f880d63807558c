"""Rows of a sparse pattern cut into pieces of bounded length, so that no long row keeps the others waiting."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

LONGEST = 128  # entries of a piece: some microseconds of work, and longer than nearly every row of nearly every graph
SHORT = 32  # of a piece where there are so few entries in all that a device stands idle while one row is walked along
FEW = 2**18


@dataclass(frozen=True, eq=False)
class RowChunks:
    """Piece p covers the entries ``start[p]`` to ``stop[p]``, all of them of row ``row[p]``.

    Every row has at least one piece, an empty row an empty one. A row of one piece is written where it belongs, which
    ``slot[p] = -1`` says; a row of several leaves a partial result in the slot of each, and the slots ``split_ptr[s]``
    to ``split_ptr[s + 1]`` are then put together, in this order always, to give row ``split_row[s]``. 32-bit.

    Shapes:
        ``row``, ``start``, ``stop``, ``slot`` (pieces,); ``split_row`` (splits,); ``split_ptr`` (splits + 1,).
    """

    row: Tensor
    start: Tensor
    stop: Tensor
    slot: Tensor
    split_row: Tensor
    split_ptr: Tensor
    num_slots: int

    def __len__(self) -> int:
        return len(self.row)

    @property
    def bounds(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """``row``, ``start``, ``stop`` and ``slot`` of every piece."""
        return self.row, self.start, self.stop, self.slot

    @cached_property
    def split_bounds(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The same of the pieces of split rows alone."""
        split = (self.slot >= 0).nonzero()[:, 0]
        return self.row[split], self.start[split], self.stop[split], self.slot[split]


def longest_of(entries: int) -> int:
    """How long a piece may be where there are so many entries in all."""
    return min(LONGEST, SHORT) if entries < FEW else LONGEST


def cut(ptr: Tensor, *, longest: int) -> RowChunks:
    """The pieces of the rows that ``ptr`` (rows + 1,) bounds, of at most ``longest`` entries each."""
    ptr = ptr.long()
    counts = ((ptr.diff() + longest - 1) // longest).clamp(min=1)
    row = torch.arange(len(counts), device=ptr.device).repeat_interleave(counts)
    first = counts.cumsum(0) - counts
    start = ptr[:-1][row] + longest * (torch.arange(len(row), device=ptr.device) - first[row])
    stop = torch.minimum(start + longest, ptr[1:][row])
    split = counts > 1
    within = split[row]
    slot = torch.where(within, within.cumsum(0) - 1, -1)
    slots = counts[split].cumsum(0)
    split_ptr = torch.cat((slots.new_zeros(1), slots))
    num_slots = int(split_ptr[-1])
    return RowChunks(
        row.int(), start.int(), stop.int(), slot.int(), split.nonzero()[:, 0].int(), split_ptr.int(), num_slots
    )
