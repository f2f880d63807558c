"""The modes of training, with what each needs on a device and how long an epoch takes."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch

from beltrami.errors import DataError
from beltrami.planner.coefficients import COSTS
from beltrami.planner.workload import NUMBER, Workload
from beltrami.scale.diffuse import diffusion_need
from beltrami.scale.memory_plan import MemoryPlan, plan_memory
from beltrami.scale.streamed_inputs import FlowSizes, encoded_rows, plan_training

BUS = 50e9  # bytes a second from host memory to an H200 (results/out_of_core.json)
LINK = 200e9  # bytes a second between two GPUs; assumed, not measured
WORKSPACES = 2**26  # bytes of cuBLAS on a Hopper GPU, for the forward and the backward pass on one stream
PRODUCTS = 3  # products of a training step for each of the forward pass: again, and transposed, in the backward pass
MOST_PLANNED = 2**16  # nodes of a graph whose plan is made; that of a larger one is the same, scaled
PLANNED, DIFFUSED = 0.9, 0.8  # shares of a device's memory that the plans of blocks and of precomputed may take
TIMES = 5  # positive times at which features are precomputed
ROW_SECONDS = 2e-6  # to read a row and to train on it; assumed, not measured on a GPU
LEAST_NODE = 64  # bytes on the device for each node, without which no plan is tried
HOST_EDGE = 60  # bytes of an edge in memory while a graph is prepared


@dataclass(frozen=True)
class Devices:
    """Devices of equal memory, in bytes."""

    memory: int
    count: int = 1


@dataclass(frozen=True)
class ModeCost:
    """What a mode needs: bytes on each device and on the host, seconds of an epoch, and seconds before the first one;
    ``note`` names assumptions, or why the mode is not possible."""

    device_bytes: float
    host_bytes: float
    epoch_seconds: float
    first_seconds: float = 0.0
    note: str = ""


def whole(w: Workload, devices: Devices) -> ModeCost:
    """Everything on one device."""
    memory, seconds = COSTS["whole-live" if w.live else "whole-frozen"]
    return ModeCost(WORKSPACES + memory(w), HOST_EDGE * w.edges + w.inputs, seconds(w))


def workers(w: Workload, devices: Devices) -> ModeCost:
    """Several devices: a frozen flow by columns, a live flow by parts of the nodes."""
    memory, seconds = COSTS["parts" if w.live else "columns"]
    on_one, _ = COSTS["whole-live" if w.live else "whole-frozen"]
    fixed = on_one(replace(w, channels=0, evaluations=0))  # inputs and edges, which every device has
    exchanged = NUMBER * w.nodes * w.channels * (2 * (w.copies - 1) * w.evaluations if w.live else 4)
    share, host = 1 / devices.count, devices.count * (HOST_EDGE * w.edges + w.inputs)
    # Launches took longest in all measurements; on larger graphs the kernels do, which are those of the whole graph.
    taken = share * max(seconds(w), whole(w, devices).epoch_seconds) + (1 - share) * exchanged / LINK
    note = "extrapolated from one device" if devices.count > 1 else ""
    return ModeCost(WORKSPACES + fixed + share * (memory(w) - fixed), host, taken, note=note)


def blocks(w: Workload, devices: Devices) -> ModeCost:
    """A frozen flow in blocks of columns and of edges on one device."""
    if w.live:
        return _impossible("for frozen flows only")
    if devices.memory < LEAST_NODE * w.nodes:
        return _impossible("one column does not fit")
    sizes = FlowSizes(
        columns=w.channels,
        terms=w.evaluations,
        heads=w.heads if w.width else 0,
        width=w.width // max(w.heads, 1),
        inputs=w.features + w.channels,
        outputs=(1, 0, 1),
    )
    scale, ptr = _scaled_rows(w)
    limit = int(PLANNED * devices.memory) // scale
    try:
        plan, _ = plan_training(ptr, sizes, dtype=torch.float32, memory=limit, device="cuda")
    except DataError:
        return _impossible("one column does not fit")
    planned = replace(w, planned=float(scale * plan.bytes), column_blocks=math.ceil(w.channels / plan.columns))
    planned = replace(planned, row_chunks=row_chunks(w, int(PLANNED * devices.memory)))
    copied = 12 * _copied_edges(w, plan) * planned.column_blocks * PRODUCTS * w.evaluations
    memory, seconds = COSTS["blocks"]
    return ModeCost(WORKSPACES + memory(planned), 20 * w.edges, seconds(planned) + copied / BUS)


def precomputed(w: Workload, devices: Devices) -> ModeCost:
    """A network on rows of features that are diffused once, in minibatches from files."""
    if w.live:
        return _impossible("for fixed weights only")
    if devices.memory < LEAST_NODE * w.nodes:
        return _impossible("one column does not fit")
    scale, ptr = _scaled_rows(w)
    need = diffusion_need(times=TIMES, dtype=torch.float32, weighted=False, device="cuda")
    try:
        plan = plan_memory(ptr, need, columns=w.features, memory=int(DIFFUSED * devices.memory) // scale, device="cuda")
    except DataError:
        return _impossible("one column does not fit")
    passes = math.ceil(w.features / plan.columns)
    diffused = replace(w, planned=float(scale * plan.bytes), channels=w.features, column_blocks=passes)
    memory, seconds = COSTS["diffuse"]
    copied = 4 * _copied_edges(w, plan) * passes * w.evaluations
    first = seconds(diffused) + copied / BUS
    note = "fixed weights, a linear encoder; files of " + _gigabytes(NUMBER * w.nodes * w.features * TIMES)
    return ModeCost(memory(diffused), 4 * w.edges, ROW_SECONDS * w.nodes, first, note)


MODES: Mapping[str, Callable[[Workload, Devices], ModeCost]] = {
    "whole": whole,
    "workers": workers,
    "blocks": blocks,
    "precomputed": precomputed,
}
"""The modes by name, in the order in which they depart from the plainest one."""


def row_chunks(w: Workload, limit: int) -> int:
    """Return the chunks in which training in blocks within ``limit`` bytes encodes the rows of the features."""
    return math.ceil(w.nodes / encoded_rows(w.nodes, w.features + w.channels, w.channels, limit))


def _scaled_rows(w: Workload) -> tuple[int, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Return a factor and the bounds of the rows of a graph that is smaller by this factor, with equal degrees."""
    scale = math.ceil(w.nodes / MOST_PLANNED)
    nodes = max(1, w.nodes // scale)
    return scale, np.linspace(0, w.edges // scale, nodes + 1).astype(np.int64)


def _copied_edges(w: Workload, plan: MemoryPlan) -> float:
    """Return how many edges are copied to the device in every pass."""
    planned = sum(each.num_edges for each in plan.ranges)
    return w.edges * (1 - plan.resident_edges / max(planned, 1))


def _impossible(note: str) -> ModeCost:
    return ModeCost(math.inf, math.inf, math.inf, note=note)


def _gigabytes(count: float) -> str:
    return f"{count / 1e9:.3g} GB"
