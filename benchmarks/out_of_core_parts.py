"""The measurements of `out_of_core.py`, each of which runs in a process of its own and prints its result as JSON."""

import json
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from beltrami import BLEND, Decoder, Edges, Encoder, Evolution, Exponential, LinearFlow, Loops, Rate, ScaledDot, Source
from beltrami.data import Split
from beltrami.data.array_file import new_array
from beltrami.data.graph_folder import TEST, TRAIN, VAL, GraphFolder, finish_graph_folder
from beltrami.memory import resident_memory
from beltrami.scale.block_matrix import BlockMatrix, random_walk
from beltrami.scale.diffuse import exponential
from beltrami.scale.edge_blocks import BlockRange, EdgeBlocks, row_ranges
from beltrami.scale.streamed_model import open_streamed
from beltrami.train import Classification, TimeGrid, Training, fit, seeded

DEGREE, TIME, RTOL = 50, 4.0, 1e-3
FEATURES, CLASSES, LABELLED, CHANNELS, WIDTH, HEADS = 32, 10, 0.01, 64, 32, 2
BLOCK = 2**24  # edges of a row block


def synchronise(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize(device)


def seconds(work: Callable[[], object], device: str, *, least: float = 0.3, most: int = 50) -> float:
    """Return the seconds of a call: the median of repetitions after one for compilation."""
    work()
    synchronise(device)
    found: list[float] = []
    while len(found) < most and (sum(found) < least or len(found) < 3):
        start = time.perf_counter()
        work()
        synchronise(device)
        found.append(time.perf_counter() - start)
    return float(np.median(found))


class RandomGraph:
    """A graph of even degree: node ``order[p]`` has the neighbours ``order[p +- o]`` for some offsets o.

    The order is random, so that neighbours are anywhere in memory, and every edge has its reverse.
    """

    def __init__(self, nodes: int, *, degree: int = DEGREE, device: str, ascending: bool = False) -> None:
        generator = torch.Generator(device).manual_seed(0)
        self.nodes, self.ascending = nodes, ascending
        self.order = torch.randperm(nodes, generator=generator, device=device)
        self.place = torch.empty_like(self.order)
        self.place[self.order] = torch.arange(nodes, device=device)
        offsets = 1 + torch.randperm((nodes - 1) // 2, generator=generator, device=device)[: degree // 2]
        self.offsets = torch.cat((offsets, -offsets))
        self.ptr = np.arange(nodes + 1, dtype=np.int64) * len(self.offsets)

    def senders(self, each: BlockRange) -> Tensor:
        around = (self.place[each.start : each.stop, None] + self.offsets) % self.nodes
        found = self.order[around].int()
        return (found.sort(1).values if self.ascending else found).flatten()

    def blocks(self, device: str, *, resident: bool) -> EdgeBlocks:
        ranges = row_ranges(self.ptr, most_edges=min(BLOCK, max(1, int(self.ptr[-1]) // 4)), most_rows=self.nodes)
        return EdgeBlocks(self.ptr, self.senders, ranges=ranges, on_device=[resident] * len(ranges), device=device)


def bandwidths(device: str, *, size: int) -> dict[str, float]:
    """Return the measured GB/s of a copy on the device, reads and writes added, and from pinned host memory to it."""
    source, target = (torch.empty(size, dtype=torch.uint8, device=device) for _ in range(2))
    host = torch.empty(size, dtype=torch.uint8, pin_memory=device != "cpu")
    return {
        "device_copy": 2e-9 * size / seconds(lambda: target.copy_(source), device),
        "host_to_device": 1e-9 * size / seconds(lambda: target.copy_(host, non_blocking=True), device),
    }


def product_bytes(nodes: int, edges: int, columns: int) -> int:
    """Return the bytes of a product if nothing is in a cache: senders, gathered rows, and four rows for each node."""
    return edges * (4 + 4 * columns) + 4 * nodes * (4 * columns + 3)


def forward(device: str, *, edges: int, columns: Sequence[int]) -> dict[str, Any]:
    """exp(t (P - I)) x with all edges on the device and with all edges copied from host memory for every product."""
    graph = RandomGraph(edges // DEGREE, device=device)
    found: dict[str, Any] = {"nodes": graph.nodes, "edges": int(graph.ptr[-1]), "time": TIME, "rtol": RTOL}
    found["bandwidth_gb_s"] = bandwidths(device, size=min(2**31, 16 * edges))
    bus = found["bandwidth_gb_s"]["host_to_device"]
    for place, resident in {"resident": True, "streamed": False}.items():
        start = time.perf_counter()
        matrix = random_walk(graph.blocks(device, resident=resident), loops=1.0, dtype=torch.float32)
        synchronise(device)
        found[place] = {"prepared_s": time.perf_counter() - start, "columns": {}}
        for width in columns:
            try:
                found[place]["columns"][width] = _diffused(matrix, width, device, bus, streamed=not resident)
            except Exception as error:
                found[place]["columns"][width] = {"error": repr(error)}
        if not resident:
            found["profile"] = attempt(partial(overlap, matrix, columns[-1], device))
        del matrix
    both = [found[place]["columns"].get(columns[0], {}).get("checksum") for place in ("resident", "streamed")]
    found["same_bits"] = both[0] is not None and both[0] == both[1]
    return found


def _diffused(matrix: BlockMatrix, width: int, device: str, bus: float, *, streamed: bool) -> dict[str, Any]:
    nodes, edges = matrix.edges.num_nodes, matrix.edges.num_edges
    generator = torch.Generator(device).manual_seed(1)
    start = partial(torch.randn, nodes, width, device=device, generator=generator)
    y, out = start(), torch.empty(nodes, width, device=device)
    product = seconds(partial(matrix.advance, out, y, factor=2.0, previous=(-1.0, out)), device)
    del out, y
    generator.manual_seed(1)
    before = matrix.products
    synchronise(device)
    begin = time.perf_counter()
    (result,), bound = exponential(matrix, start, times=(TIME,), rtol=RTOL)
    synchronise(device)
    total = time.perf_counter() - begin
    return {
        "products": matrix.products - before,
        "total_s": total,
        "error_bound": bound,
        "product_s": product,
        "product_gb_s": 1e-9 * product_bytes(nodes, edges, width) / product,
        "bus_bound_s": 4e-9 * edges / bus if streamed else 0.0,
        "peak_gib": peak_gib(device),
        "checksum": [float(result.double().sum()), float(result.double().square().sum()), float(result[nodes // 3, 0])],
    }


def overlap(matrix: BlockMatrix, width: int, device: str) -> dict[str, Any]:
    """Profile three products and return which share of the copying time kernels were running."""
    y, out = (torch.ones(matrix.edges.num_nodes, width, device=device) for _ in range(2))
    matrix.advance(out, y)
    synchronise(device)
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA][device != "cpu" :]
    with torch.profiler.profile(activities=kinds) as profile:
        for _ in range(3):
            matrix.advance(out, y, factor=2.0, previous=(-1.0, out))
        synchronise(device)
    spans: dict[str, list[tuple[float, float]]] = {"copy": [], "kernel": []}
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            kind = "copy" if "HtoD" in event.name else "kernel" if "_sum_rows" in event.name else ""
            if kind:
                spans[kind].append((event.time_range.start, event.time_range.end))
    copying, computing = (_length(_union(spans[kind])) for kind in ("copy", "kernel"))
    hidden = copying + computing - _length(_union(spans["copy"] + spans["kernel"]))
    return {
        "columns": width,
        "copies": len(spans["copy"]),
        "copy_ms": copying / 1e3,
        "kernel_ms": computing / 1e3,
        "both_ms": hidden / 1e3,
        "copy_hidden": hidden / copying if copying else None,
        "kernel_covered": hidden / computing if computing else None,
    }


def _union(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _length(spans: list[tuple[float, float]]) -> float:
    return sum(end - start for start, end in spans)


def growth_forward(device: str, *, sizes: Sequence[int], columns: int) -> dict[str, Any]:
    """Seconds and memory of a product and of a whole diffusion, for graphs of one degree and growing size."""
    rows = []
    for edges in sizes:
        reset_peak(device)
        graph = RandomGraph(edges // DEGREE, device=device)
        matrix = random_walk(graph.blocks(device, resident=True), loops=1.0, dtype=torch.float32)
        del graph
        reset_peak(device)
        row = {"edges": edges, "state_bytes": 4 * columns * matrix.edges.num_nodes}
        rows.append(row | attempt(partial(_diffused, matrix, columns, device, math.inf, streamed=False)))
        del matrix
    return {"columns": columns, "rows": rows, "cache_bytes": cache_bytes(device)}


def write_graph(folder: Path, *, edges: int, device: str) -> GraphFolder:
    """Write a graph with features of which each class shifts some, and roles, to a folder."""
    graph = RandomGraph(edges // DEGREE, device=device, ascending=True)
    n, random = graph.nodes, np.random.default_rng(0)
    y = random.integers(CLASSES, size=n)
    share = max(LABELLED, min(0.3, 200 / n))  # of training nodes, and of validation nodes
    role = random.choice([TRAIN, VAL, TEST], size=n, p=[share, share, 1 - 2 * share]).astype(np.uint8)
    shift = random.normal(size=(CLASSES, FEATURES)).astype(np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {"ptr": graph.ptr, "y": y, "role": role}
    for name, values in arrays.items():
        with new_array(folder / f"{name}.npy", shape=values.shape, dtype=values.dtype) as out:
            out[...] = values
    with new_array(folder / "x.npy", shape=(n, FEATURES), dtype=np.float32) as out:
        for start in range(0, n, 2**18):
            rows = slice(start, start + 2**18)
            out[rows] = random.normal(size=(len(y[rows]), FEATURES)).astype(np.float32) + 0.5 * shift[y[rows]]
    with new_array(folder / "index.npy", shape=(int(graph.ptr[-1]),), dtype=np.int32) as out:
        for each in row_ranges(graph.ptr, most_edges=BLOCK, most_rows=n):
            out[each.first : each.last] = graph.senders(each).cpu().numpy()
    return finish_graph_folder(folder, num_nodes=n, num_edges=int(graph.ptr[-1]))


def blend(*, channels: int) -> BLEND:
    """Return the model of the training part, from the seed 0."""
    with seeded(0):
        flow = LinearFlow(ScaledDot(channels, WIDTH, heads=HEADS), rate=Rate(), source=Source())
        scheme = Exponential(rtol=1e-6, atol=0.0)  # so small that another number of terms changes nothing
        evolution = Evolution(flow, scheme=scheme, time=TIME, stencil=Loops(1.0))
        return BLEND.from_parts(Encoder(FEATURES, channels), evolution, Decoder(channels, CLASSES))


def train(
    folder: Path,
    device: str,
    *,
    epochs: int,
    memory: int | None,
    channels: int,
    optimiser: str = "Adam",
    planned: float = 0.92,
) -> dict[str, Any]:
    """Train in blocks within ``memory`` bytes, or for None in memory; return losses, seconds and peak memory."""
    if memory is not None and device != "cpu":
        total = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, memory / total), torch.cuda.current_device())
    graph, model = GraphFolder.open(folder), blend(channels=channels).to(device)
    assert graph.x is not None
    y, role = (torch.from_numpy(np.array(each)).to(device) for each in (graph.y, graph.role))
    split = Split(role == TRAIN, role == VAL, role == TEST, "given", 0)
    found: dict[str, Any] = {"edges": graph.num_edges, "channels": channels, "limit_gib": memory and memory / 2**30}
    start = time.perf_counter()
    if memory is None:
        j = torch.from_numpy(np.array(graph.index)).to(device).long()
        i = torch.arange(graph.num_nodes, device=device).repeat_interleave(DEGREE)
        edges = Edges.build(torch.stack((j, i)), num_nodes=graph.num_nodes)
        del i, j
        inputs: Any = model.prepare(torch.from_numpy(np.array(graph.x)).to(device), edges)
        used: Any = model
    else:
        within = int(planned * memory)  # the rest is for what the allocator cannot use, and for kernels of libraries
        used, inputs = open_streamed(model, graph, memory=within, device=device, labelled_nodes=int(split.val.sum()))
        found |= {"plan": inputs.plan.summary, "planned_gib": inputs.plan.bytes / 2**30}
    found["prepared_s"] = time.perf_counter() - start
    losses, ends = [], []

    def note(epoch: Any) -> None:
        losses.append(epoch.losses[0])
        ends.append(time.perf_counter())

    make = partial(getattr(torch.optim, optimiser), lr=0.01)
    training = Training(epochs=epochs, optimiser=make, time_grid=TimeGrid(multiple=1.0), validate_every=1)
    reset_peak(device)
    begin = time.perf_counter()
    fit(used, inputs, y, split, training, task=Classification(CLASSES), callbacks=[note])
    found |= {"losses": losses, "first_epoch_s": ends[0] - begin, "peak_gib": peak_gib(device)}
    found["epoch_s"] = float(np.median(np.diff(ends))) if len(ends) > 1 else None
    found["process_gib"] = device_used_gib(device)
    return found


def growth_train(folder: Path, device: str, *, sizes: Sequence[int], channels: int) -> dict[str, Any]:
    """Seconds and memory of an epoch, step and validation, for growing graphs."""
    rows = []
    for edges in sizes:
        path = folder / "graph"  # of the training part, where its size is the same
        if GraphFolder.open(path).num_edges != edges:
            path = folder / f"{edges}"
            write_graph(path, edges=edges, device=device)
        memory = 2**36 if device != "cpu" else 2**31
        rows.append(
            attempt(partial(train, path, device, epochs=4, memory=memory, channels=channels)) | {"edges": edges}
        )
    return {"channels": channels, "rows": rows}


def attempt(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the result of a measurement, or its error."""
    try:
        return work()
    except Exception as error:
        return {"error": repr(error)[:500]}


def reset_peak(device: str) -> None:
    if device != "cpu":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def peak_gib(device: str) -> float:
    """Return the most memory that tensors took on the device; on the CPU what the process holds now."""
    if device != "cpu":
        return torch.cuda.max_memory_reserved(device) / 2**30
    return (resident_memory() or 0) / 2**30


def device_used_gib(device: str) -> float | None:
    """Return the memory of the device that is in use, which includes the context of CUDA."""
    if device == "cpu":
        return None
    free, total = torch.cuda.mem_get_info(device)
    return (total - free) / 2**30


def cache_bytes(device: str) -> int:
    """Return the size of the last-level cache; 32 MiB for a CPU."""
    return 2**25 if device == "cpu" else int(torch.cuda.get_device_properties(device).L2_cache_size)


def environment(device: str) -> dict[str, Any]:
    name = "cpu" if device == "cpu" else torch.cuda.get_device_name(device)
    return {"device": name, "torch": torch.__version__, "threads": torch.get_num_threads()}


def as_json(values: dict[str, Any]) -> str:
    return json.dumps(values, allow_nan=True)
