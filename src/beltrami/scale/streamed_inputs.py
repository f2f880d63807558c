"""The inputs of a model on a graph that is read in blocks, and the arrays that its passes fill."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from beltrami.arguments import Count, DeviceName, checked
from beltrami.data.array_file import Array
from beltrami.data.graph_folder import GraphFolder
from beltrami.errors import DataError
from beltrami.graph.edges import FACTORS
from beltrami.model import Inputs
from beltrami.model.coder import Matrix
from beltrami.scale.block_matrix import BlockMatrix, random_walk
from beltrami.scale.column_blocks import ColumnBlocks
from beltrami.scale.edge_blocks import BlockArray, EdgeBlocks
from beltrami.scale.frozen_flow import EdgeGradient
from beltrami.scale.memory_plan import MemoryNeed, MemoryPlan, itemsize, memory_limit, plan_memory

ENCODED_ROWS = 2**16  # rows that are encoded at once, at most
ROW_SHARE = 16  # one part in ROW_SHARE of the memory is for the rows that are being encoded


@dataclass(frozen=True)
class FlowSizes:
    """The numbers that decide how much memory a training step needs.

    ``columns`` of the state, ``terms`` of the sum, ``heads`` and ``width`` of the attention (0 for fixed weights), the
    width of a row of ``inputs`` with the hidden layers of its encoders, and the ``outputs`` of validation: times, nodes
    and classes.
    """

    columns: int
    terms: int
    heads: int
    width: int
    inputs: int
    outputs: tuple[int, int, int]


def plan_training(
    ptr: Array, sizes: FlowSizes, *, dtype: torch.dtype, memory: int | None, device: str
) -> tuple[MemoryPlan, bool]:
    """Return the plan for rows with bounds ``ptr``, and whether z(0) and its derivative are on the device."""
    limit, found = memory_limit(memory, device), []
    for on_device in (True, False):
        need = _training_need(len(ptr) - 1, sizes, limit, itemsize(dtype), on_device)
        try:
            plan = plan_memory(ptr, need, columns=sizes.columns, memory=limit, device=device)
            found.append((plan, on_device))
        except DataError:
            if not (found or on_device):
                raise
    return min(found, key=lambda each: each[0].copied)  # the first, with states on the device, of equal ones


def _training_need(nodes: int, sizes: FlowSizes, limit: int, size: int, states_on_device: bool) -> MemoryNeed:
    learned, heads = sizes.heads > 0, sizes.heads
    times, valued, classes = sizes.outputs
    states = 2 * sizes.columns * size if states_on_device else 0
    training = 2 * (sizes.terms + 1) + 6 if learned else 11
    validation = 4 + times * math.ceil(valued / max(nodes, 1))
    return MemoryNeed(
        node=24 + 6 * size + 3 * heads * size + states,  # bounds, degrees, targets and masks; diagonals; log Z
        column=max(training, validation) * size,
        edge=4 + 4 * size * learned,
        staged=4 + 2 * size * learned,
        work=(40 + 10 * heads * size) if learned else 48,
        row=160 + 3 * heads * sizes.width * size,
        row_column=2 * size,
        other=4 * heads * sizes.width * size,
        fixed=encoded_rows(nodes, sizes.inputs, sizes.columns, limit) * _row_bytes(sizes.inputs, sizes.columns)
        + 3 * times * valued * (classes + sizes.columns) * size,
    )


def encoded_rows(nodes: int, inputs: int, columns: int, limit: int) -> int:
    """Return how many rows are encoded at once."""
    return max(1, min(limit // ROW_SHARE // _row_bytes(inputs, columns), ENCODED_ROWS, nodes))


def _row_bytes(inputs: int, columns: int) -> int:
    """Return the bytes that a row takes while it is encoded, with its masks of dropout."""
    return 48 * inputs + 24 * columns


@checked
class StreamedInputs(Inputs):
    """Inputs that are read in blocks of rows, with the plan of the memory of the device. The attributes ``x`` and
    ``edges`` of :class:`~beltrami.model.Inputs` do not exist here.

    Args:
        folder: a graph without edge weights in which every edge has its reverse.
        plan: the plan that :func:`plan_training` returned.
        states_on_device: the second value that it returned.
        inputs: the width of a row of features and positions, with the hidden layers of its encoders.
    """

    def __init__(
        self,
        folder: GraphFolder,
        plan: MemoryPlan,
        *,
        columns: Count,
        inputs: Count,
        states_on_device: bool,
        dtype: torch.dtype,
        device: DeviceName,
    ) -> None:
        blocks = plan.place(folder, device)
        known = {
            "folder": folder,
            "plan": plan,
            "blocks": blocks,
            "dtype": dtype,
            "row_limit": encoded_rows(folder.num_nodes, inputs, columns, plan.limit),
            "_states": [
                ColumnBlocks(
                    folder.num_nodes,
                    columns,
                    width=plan.columns,
                    dtype=dtype,
                    device=blocks.device,
                    on_device=states_on_device,
                )
                for _ in range(2)
            ],
            "_values": {},
            "_walks": {},
            "number": 0,
        }
        for name, value in known.items():
            object.__setattr__(self, name, value)

    folder: GraphFolder
    plan: MemoryPlan
    blocks: EdgeBlocks
    dtype: torch.dtype
    row_limit: int
    _states: list[ColumnBlocks]
    _values: dict[str, BlockArray]
    _walks: dict[float, BlockMatrix]
    number: int  # of the last forward pass, to which the arrays belong

    def begin_pass(self) -> int:
        """Count a forward pass and return its number."""
        object.__setattr__(self, "number", self.number + 1)
        return self.number

    @property
    def num_nodes(self) -> int:
        return self.folder.num_nodes

    @property
    def device(self) -> torch.device:
        return self.blocks.device

    @property
    def needs_grad(self) -> bool:
        return False

    @cached_property
    def hashes(self) -> tuple[int, int]:
        """The hashes of the edges and of the reverse edges (:func:`edge_hash`)."""
        return edge_hash(self.blocks)

    @property
    def graph(self) -> int:
        """The fingerprint of the graph, that of the same ``Edges``."""
        return self.hashes[0] ^ self.num_nodes

    @property
    def arrays(self) -> dict[str, Matrix | None]:
        return {}  # not in memory

    @property
    def z0(self) -> ColumnBlocks:
        """The encoded state of the last pass."""
        return self._states[0]

    @property
    def by_z0(self) -> ColumnBlocks:
        """Its derivative."""
        return self._states[1]

    def values(self, name: str) -> BlockArray:
        """Return an array of edge values by name, made when it is first needed."""
        if name not in self._values:
            self._values[name] = self.blocks.new_values(self.dtype)
        return self._values[name]

    def edge_gradient(self) -> EdgeGradient:
        """Return derivatives by edges, all zero."""
        by_a, by_transposed = self.values("by_a"), self.values("by_transposed")
        for part in (*by_a.parts, *by_transposed.parts):
            assert isinstance(part, Tensor)
            part.zero_()
        return EdgeGradient(by_a, by_transposed, torch.zeros(self.num_nodes, dtype=self.dtype, device=self.device))

    def walk_matrix(self, loops: float) -> BlockMatrix:
        """Return the matrix of the random walk, made once."""
        if loops not in self._walks:
            self._walks[loops] = random_walk(self.blocks, loops=loops, dtype=self.dtype)
        return self._walks[loops]

    def row_ranges(self) -> Iterator[slice]:
        """Yield the ranges of rows that are encoded at once."""
        for start in range(0, self.num_nodes, self.row_limit):
            yield slice(start, min(start + self.row_limit, self.num_nodes))

    def row_chunks(self) -> Iterator[tuple[slice, Tensor, Tensor | None]]:
        """Yield ranges of rows with their features and positions on the device."""
        for rows in self.row_ranges():
            assert self.folder.x is not None
            pos = self.folder.pos
            yield rows, self._read(self.folder.x, rows), None if pos is None else self._read(pos, rows)

    def _read(self, array: Array, rows: slice) -> Tensor:
        return torch.from_numpy(np.array(array[rows])).to(self.device).to(self.dtype)


@torch.no_grad()
def edge_hash(blocks: EdgeBlocks) -> tuple[int, int]:
    """Return sums over the edges of a hash of (j, i) and of (i, j); they are equal if every edge has its reverse, and
    otherwise only by a chance of 2^-64."""
    total = torch.zeros(2, dtype=torch.int64, device=blocks.device)
    for _, block, _ in blocks.walk():
        j, i = block.index.long(), block.receivers
        total += torch.stack([_mixed(j, i).sum(), _mixed(i, j).sum()])
    forward, backward = total.tolist()
    return forward, backward


def _mixed(first: Tensor, second: Tensor) -> Tensor:
    mixed = first * FACTORS[0] + second * FACTORS[1]  # 64-bit integers wrap around
    mixed = (mixed ^ (mixed >> 29)) * FACTORS[2]
    return mixed ^ (mixed >> 32)
