"""Edges in row blocks: the pattern of a graph and arrays of edge values, in part on the device, in part on the host."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from beltrami.data.array_file import Array
from beltrami.data.graph_folder import MOST_NODES, GraphFolder
from beltrami.errors import DataError
from beltrami.graph import Edges
from beltrami.graph.ops.row_block import RowBlock, cut_long_rows
from beltrami.scale.prefetch import CudaStaging, HostStaging, Source, new_tensor, one_ahead


@dataclass(frozen=True)
class BlockRange:
    """Rows ``start`` to ``stop`` of a pattern, and their edges ``first`` to ``last``."""

    start: int
    stop: int
    first: int
    last: int

    @property
    def num_edges(self) -> int:
        return self.last - self.first


def row_ranges(ptr: Array, *, most_edges: int, most_rows: int) -> list[BlockRange]:
    """Return consecutive ranges of at most ``most_rows`` rows and ``most_edges`` edges; a single row may have more."""
    ranges, start, nodes = [], 0, len(ptr) - 1
    while start < nodes:
        end = int(np.searchsorted(ptr, int(ptr[start]) + most_edges, side="right")) - 1
        stop = min(max(end, start + 1), start + most_rows, nodes)
        ranges.append(BlockRange(start, stop, int(ptr[start]), int(ptr[stop])))
        start = stop
    return ranges


def evenly_spread(chosen: int, count: int) -> list[bool]:
    """Return which of ``count`` blocks are chosen, at even distances: copies of the others then never pause."""
    return [(k + 1) * chosen // count > k * chosen // count for k in range(count)]


class BlockArray:
    """Values of the edges, one part for each row block, on the device or on the host."""

    def __init__(self, parts: Sequence[Source]) -> None:
        self.parts = list(parts)

    @torch.no_grad()
    def write(self, block: int, values: Tensor) -> None:
        """Write the values of a block; nothing is copied if ``values`` is the stored tensor itself."""
        part = self.parts[block]
        assert isinstance(part, Tensor)  # memory maps are read only
        if part.data_ptr() != values.data_ptr():
            part.copy_(values, non_blocking=part.is_pinned())


class EdgeBlocks:
    """The pattern of a graph in row blocks, on which :meth:`walk` iterates.

    The bounds of the rows are on the device, 4 bytes for each node. The senders of some blocks are kept on the device.
    The senders of other blocks are copied while the block before is computed, from pinned host memory or from a memory
    map.

    Args:
        ptr: (n + 1,), the bounds of the rows.
        senders: a function that returns the senders of the edges of a range, as a tensor or a part of a memory map.
        ranges: the row blocks.
        on_device: for each of them, whether its edges are kept on the device.
        pinned: whether the edges of other blocks are kept in host memory; else every pass reads them from ``senders``.
    """

    def __init__(
        self,
        ptr: Array,
        senders: Callable[[BlockRange], Source],
        *,
        ranges: Sequence[BlockRange],
        on_device: Sequence[bool],
        device: torch.device | str = "cpu",
        pinned: bool = True,
    ) -> None:
        self.device = torch.empty(0, device=device).device  # with its number
        self.ranges, self.on_device = list(ranges), list(on_device)
        self.num_nodes, self.num_edges = len(ptr) - 1, int(ptr[-1])
        if self.num_nodes > MOST_NODES:
            raise DataError(f"the graph has {self.num_nodes} nodes; at most {MOST_NODES} are possible.")
        self.pinned = pinned
        self._bounds = [self._bounds_of(ptr, each) for each in self.ranges]
        self.index = BlockArray([self._placed(senders(each), k) for k, each in enumerate(self.ranges)])
        entries = max((each.num_edges for each in self.ranges), default=0)
        cuda = self.device.type == "cuda"
        self.staging = CudaStaging(self.device, entries=entries) if cuda else HostStaging(entries=entries)

    @staticmethod
    def of(
        graph: GraphFolder | Edges, *, ranges: Sequence[BlockRange], on_device: Sequence[bool],
        device: torch.device | str = "cpu", pinned: bool = True,
    ) -> "EdgeBlocks":  # fmt: skip
        """Return the row blocks of a graph in a folder or in memory."""
        ptr, index = compressed_rows(graph)
        senders = lambda each: index[each.first : each.last]  # noqa: E731
        return EdgeBlocks(ptr, senders, ranges=ranges, on_device=on_device, device=device, pinned=pinned)

    def _bounds_of(self, ptr: Array, each: BlockRange) -> tuple[Tensor, tuple[Tensor, Tensor] | None]:
        bounds = torch.from_numpy(np.asarray(ptr[each.start : each.stop + 1]) - each.first).int()
        parts = cut_long_rows(bounds) if self.device.type == "cuda" else None
        return bounds.to(self.device), None if parts is None else (parts[0].to(self.device), parts[1].to(self.device))

    def _placed(self, senders: Source, block: int) -> Source:
        """Return the senders of a block where they are to be kept."""
        if not self.on_device[block] and not self.pinned and not isinstance(senders, Tensor):
            return senders
        tensor = senders if isinstance(senders, Tensor) else torch.from_numpy(np.array(senders, dtype=np.int32))
        if self.on_device[block]:
            return tensor.to(self.device)
        return _pinned(tensor) if self.device.type == "cuda" else tensor

    def new_values(self, dtype: torch.dtype) -> BlockArray:
        """Return an array of zeros on the edges, on the device for the blocks that are there."""
        blocks = zip(self.ranges, self.on_device, strict=True)
        return BlockArray(
            [new_tensor((each.num_edges,), dtype, self.device, on_device=there).zero_() for each, there in blocks]
        )

    def values_of(self, array: Array) -> BlockArray:
        """Return an array of the edges of a folder, such as their weights, kept where their senders are."""
        parts: list[Source] = []
        for each, there in zip(self.ranges, self.on_device, strict=True):
            part = array[each.first : each.last]
            parts.append(torch.from_numpy(np.array(part)).to(self.device) if there else part)
        return BlockArray(parts)

    def walk(
        self, *arrays: BlockArray, after_writes: bool = False
    ) -> Iterator[tuple[int, RowBlock, tuple[Tensor, ...]]]:
        """Yield the number of each row block, the block, and the values of its edges in each of the arrays.

        ``after_writes``: wait for an earlier pass that may still write to the arrays.
        """
        if after_writes:
            self.order_after_writes()
        needed = ((k, [array.parts[k] for array in (self.index, *arrays)]) for k in range(len(self.ranges)))
        for k, (index, *values) in one_ahead(needed, self.staging):
            ptr, parts = self._bounds[k]
            yield k, RowBlock(self.ranges[k].start, self.ranges[k].stop, ptr, index, parts), tuple(values)

    def order_after_writes(self) -> None:
        """Let later copies begin after the computations that were started so far, which may write to arrays."""
        if isinstance(self.staging, CudaStaging):
            self.staging.order_after_writes()

    @cached_property
    def degree(self) -> Tensor:
        """The entries of each row, (n,), 32-bit."""
        return torch.cat([bounds.diff() for bounds, _ in self._bounds]) if self._bounds else torch.empty(0).int()


def compressed_rows(graph: GraphFolder | Edges) -> tuple[Array, Array]:
    """Return ptr and index of a graph."""
    if isinstance(graph, GraphFolder):
        return graph.ptr, graph.index
    return graph.rows.ptr.cpu().numpy().astype(np.int64), graph.rows.index.cpu().numpy()


def _pinned(tensor: Tensor) -> Tensor:
    return tensor if tensor.is_pinned() else tensor.cpu().pin_memory()
