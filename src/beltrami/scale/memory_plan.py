"""Plan the memory of the device: the columns of a block, the row blocks, and the edges that are kept there."""

import math
from dataclasses import dataclass

import numpy as np
import torch

from beltrami.data.array_file import Array
from beltrami.data.graph_folder import GraphFolder
from beltrami.errors import DataError
from beltrami.graph import Edges
from beltrami.graph.ops.row_block import LONG
from beltrami.memory import free_memory, in_bytes
from beltrami.scale.edge_blocks import BlockRange, EdgeBlocks, evenly_spread, row_ranges

MOST_ENTRIES = 2**24  # of a row block: 64 MiB of senders, some milliseconds of a bus
LEAST_ENTRIES = 2**8
WORK_SHARE = 8  # one part in WORK_SHARE of the memory is for the block that is being computed
FREE_SHARE = 0.8  # of the free memory that is taken where no limit is given


@dataclass(frozen=True)
class MemoryNeed:
    """The bytes that a computation needs on the device.

    ``node``: for each node, whatever the number of columns; ``column``: for each node and each column of a block;
    ``edge``: for each edge that is kept there; ``staged``: for each edge of a block that is copied, in each of two
    slots; ``work``: for each edge of a block while it is computed; ``row``: for each of its rows; ``row_column``: for
    each of its rows and columns; ``other``: for each node while there are no columns; ``fixed``: whatever the graph.
    """

    node: int
    column: int
    edge: int
    staged: int
    work: int
    row: int = 0
    row_column: int = 0
    other: int = 0
    fixed: int = 0


@dataclass(frozen=True)
class MemoryPlan:
    """The columns of a block, the row blocks, whether each of them is on the device, and the bytes of all of it."""

    columns: int
    ranges: tuple[BlockRange, ...]
    on_device: tuple[bool, ...]
    bytes: int
    limit: int
    copied: int = 0  # edges that are copied for a product with all columns

    @property
    def resident_edges(self) -> int:
        """Edges that are kept on the device."""
        return sum(each.num_edges for each, there in zip(self.ranges, self.on_device, strict=True) if there)

    def place(self, graph: GraphFolder | Edges, device: torch.device | str) -> EdgeBlocks:
        """Return the row blocks of a graph; on a GPU, the other edges are kept in host memory if they take less than
        half of it, and else read from their file in every pass."""
        others = 4 * (graph.num_edges - self.resident_edges)
        pinned = torch.device(device).type != "cpu" and others < free_memory() // 2
        return EdgeBlocks.of(graph, ranges=self.ranges, on_device=self.on_device, device=device, pinned=pinned)

    @property
    def summary(self) -> str:
        """The plan in one line."""
        edges = sum(each.num_edges for each in self.ranges)
        share = 100.0 * self.resident_edges / edges if edges else 100.0
        return (
            f"{self.columns} columns at once, {len(self.ranges)} row blocks with {share:.0f}% of the edges on the "
            f"device, {in_bytes(self.bytes)} of {in_bytes(self.limit)}"
        )


def plan_memory(ptr: Array, need: MemoryNeed, *, columns: int, memory: int | None, device: str) -> MemoryPlan:
    """Return the plan that copies the fewest edges, and of these the one with the fewest blocks of columns.

    ``ptr`` (n + 1,): the bounds of the rows; ``columns``: of the whole state. A limit too small for one column is
    refused.
    """
    limit = memory_limit(memory, device)
    nodes, edges = len(ptr) - 1, int(ptr[-1])
    longest = int(np.diff(ptr).max(initial=0)) if nodes else 0
    best: tuple[int, int, MemoryPlan] | None = None
    for blocks in _block_counts(columns):
        width = math.ceil(columns / blocks)
        entries, rows = _block_size(need, width, limit=limit, ptr=ptr, longest=longest)
        ranges = row_ranges(ptr, most_edges=entries, most_rows=rows)
        entries = max((each.num_edges for each in ranges), default=0)
        rows = max((each.stop - each.start for each in ranges), default=0)
        base = _least(need, width, nodes=nodes, entries=entries, rows=rows, longest=longest)
        on_device, used = _resident(ranges, need, left=limit - base, entries=entries)
        if used is None:
            continue
        kept = sum(each.num_edges for each, there in zip(ranges, on_device, strict=True) if there)
        cost = (blocks * (edges - kept), blocks)
        plan = MemoryPlan(width, tuple(ranges), tuple(on_device), base + used, limit, cost[0])
        if best is None or cost < best[:2]:
            best = (*cost, plan)
        if kept == edges:
            break  # more blocks of columns copy no less
    if best is None:
        entries = max(longest, LEAST_ENTRIES)
        least = _least(need, 1, nodes=nodes, entries=entries, rows=1, longest=longest) + 2 * entries * need.staged
        raise DataError(
            f"one column of {nodes} nodes needs about {in_bytes(1.15 * least)} on the device, and {in_bytes(limit)} "
            "are allowed: allow more with `--memory`."
        )
    return best[2]


def memory_limit(memory: int | None, device: str) -> int:
    """Return the limit in bytes; where none is given, a share of the free memory of the device."""
    return int(FREE_SHARE * free_memory(device)) if memory is None else memory


def itemsize(dtype: torch.dtype) -> int:
    """Return the bytes of a number."""
    return torch.empty(0, dtype=dtype).element_size()


def _block_counts(columns: int) -> list[int]:
    """Return the numbers of blocks of columns that give different widths."""
    widths = sorted({math.ceil(columns / blocks) for blocks in range(1, columns + 1)}, reverse=True)
    return [math.ceil(columns / width) for width in widths]


def _block_size(need: MemoryNeed, width: int, *, limit: int, ptr: Array, longest: int) -> tuple[int, int]:
    """Return the most edges and rows of a row block."""
    per_edge = need.work + 2 * need.staged
    entries = min(MOST_ENTRIES, max(LEAST_ENTRIES, limit // WORK_SHARE // max(per_edge, 1)))
    rows = max(1, limit // WORK_SHARE // max(need.row + need.row_column * width, 1))
    return max(min(entries, int(ptr[-1])), longest), min(rows, max(len(ptr) - 1, 1))


def _least(need: MemoryNeed, width: int, *, nodes: int, entries: int, rows: int, longest: int) -> int:
    """Return the bytes of all but the edges that are kept and the buffers of copies."""
    parts = entries // LONG if longest > LONG else 0  # of the long rows of a block, with their sums
    bounds = 16 * nodes if longest > LONG else 0
    work = entries * need.work + rows * need.row + (rows + parts) * width * need.row_column
    return need.fixed + nodes * (need.node + max(need.column * width, need.other)) + work + bounds


def _resident(ranges: list[BlockRange], need: MemoryNeed, *, left: int, entries: int) -> tuple[list[bool], int | None]:
    """Return which blocks are on the device and the bytes of this, None if not even the buffers of copies fit."""
    edges = sum(each.num_edges for each in ranges)
    if need.edge * edges <= left:
        return [True] * len(ranges), need.edge * edges
    left -= 2 * entries * need.staged
    if left < 0:
        return [], None
    largest = max(each.num_edges for each in ranges)
    chosen = min(len(ranges) - 1, left // max(1, need.edge * largest))
    on_device = evenly_spread(chosen, len(ranges))
    kept = sum(each.num_edges for each, there in zip(ranges, on_device, strict=True) if there)
    return on_device, need.edge * kept + 2 * entries * need.staged
