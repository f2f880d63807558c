"""A state (n, d) as blocks of columns, on the device or in host memory."""

from collections.abc import Iterator

import torch
from torch import Tensor

from beltrami.scale.prefetch import new_tensor


def column_ranges(columns: int, width: int) -> list[slice]:
    """Return consecutive ranges of at most ``width`` columns."""
    return [slice(start, min(start + width, columns)) for start in range(0, columns, width)]


class ColumnBlocks:
    """A state (n, d) whose columns are kept in contiguous blocks (n, k), so that products read one block at a time.

    ``on_device`` says where the blocks are kept, as in :func:`~beltrami.scale.prefetch.new_tensor`.
    """

    def __init__(
        self, nodes: int, columns: int, *, width: int, dtype: torch.dtype, device: torch.device, on_device: bool
    ) -> None:
        self.device = device
        self.ranges = column_ranges(columns, width)
        shapes = [(nodes, each.stop - each.start) for each in self.ranges]
        self.blocks = [new_tensor(shape, dtype, device, on_device=on_device) for shape in shapes]

    def load(self) -> Iterator[tuple[int, slice, Tensor]]:
        """Yield the number of each block, its columns, and its values on the device."""
        for k, columns in enumerate(self.ranges):
            yield k, columns, self.blocks[k].to(self.device, non_blocking=True)

    def store(self, block: int, values: Tensor) -> None:
        """Replace the values of a block."""
        self.blocks[block].copy_(values, non_blocking=self.blocks[block].is_pinned())

    def rows(self, rows: slice) -> Tensor:
        """Return some rows, (rows, d), on the device."""
        return torch.cat([block[rows].to(self.device, non_blocking=True) for block in self.blocks], dim=1)

    def set_rows(self, rows: slice, values: Tensor) -> None:
        """Replace the values of some rows."""
        for block, columns in zip(self.blocks, self.ranges, strict=True):
            block[rows].copy_(values[:, columns], non_blocking=block.is_pinned())
