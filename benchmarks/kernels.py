"""How fast the hot operations are on a GPU: our kernels, the vendor's library and plain torch, side by side.

    python benchmarks/kernels.py --out kernels.json

Times are medians, in milliseconds: of calls in a row between two events, and of replays of a recorded CUDA graph, which
leave out what Python costs. Bytes count every node row once for each edge that reads it; their rate is given as a share
of the measured copy bandwidth, and may exceed it where a graph fits the cache. With ``TRITON_INTERPRET=1``, ``--smoke``
runs everything once on the CPU, at toy size.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from beltrami.bench.clock import copy_bandwidth
from beltrami.data.synthetic import power_law
from beltrami.diffusivity import ScaledDot
from beltrami.flow import BeltramiFlow, LinearFlow
from beltrami.graph import (
    Both,
    Columns,
    Edges,
    Normaliser,
    Pair,
    Rows,
    aggregate,
    attend,
    edge_dot,
    pieces,
    softmax,
    squareplus,
)
from beltrami.graph.ops import attention, backend, sparse

SIZES = {"cora": (2485, 5069), "computers": (13381, 245778), "ogbn-arxiv": (169343, 1157799)}
TOY = {"toy": (20, 30)}
WARM, BATCHES, BATCH_MS = 3, 9, 1.5
Draw = Callable[..., Tensor]


@dataclass
class Row:
    """One measurement."""

    graph: str
    operation: str
    path: str
    ms: float | None = None
    graph_ms: float | None = None
    gigabytes: float | None = None
    share_of_copy: float | None = None
    error: float | None = None
    same_bits: bool | None = None
    failed: str | None = None


@contextmanager
def taking(path: str) -> Iterator[None]:
    """Have the products go this way."""
    kernel, plain = path in ("kernel", "fused"), path == "reference"
    fused = attention._fused if path == "fused" else lambda *_: False
    with (
        patch.object(backend, "has_kernel", lambda _: kernel),
        patch.object(sparse, "DTYPES", () if plain else sparse.DTYPES),
        patch.object(attention, "_fused", fused),
    ):
        yield


class Clock:
    """Milliseconds of a call."""

    def __init__(self, device: str, *, until: float) -> None:
        self.cuda, self.until = device == "cuda", until

    def late(self) -> bool:
        return time.perf_counter() > self.until

    def batch(self, run: Callable[[], Any], calls: int) -> float:
        if not self.cuda:
            start = time.perf_counter()
            for _ in range(calls):
                run()
            return 1e3 * (time.perf_counter() - start) / calls
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            run()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / calls

    def median(self, run: Callable[[], Any]) -> float:
        if not self.cuda:
            return self.batch(run, 1)
        for _ in range(WARM):
            run()
        calls = max(1, min(100, int(BATCH_MS / max(1e-3, self.batch(run, 3)))))
        return float(np.median([self.batch(run, calls) for _ in range(BATCHES)]))

    def replayed(self, run: Callable[[], Any]) -> float | None:
        if not self.cuda:
            return None
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            run()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = run()
        taken = self.median(graph.replay)
        del kept
        return taken


class Bench:
    """Measures, remembers, and goes on after a failure."""

    def __init__(self, clock: Clock, copy: float, *, replay: bool) -> None:
        self.clock, self.copy, self.replay, self.rows = clock, copy, replay, list[Row]()

    def time(
        self,
        label: tuple[str, str, str],
        run: Callable[..., Any],
        inputs: Sequence[Tensor],
        *,
        moved: float | None = None,
        right: list[Tensor] | None = None,
    ) -> None:
        """``label`` is the graph, the operation and the path; ``moved`` its bytes; ``right`` its true result."""
        row = Row(*label, gigabytes=None if moved is None else moved / 1e9)
        self.rows.append(row)
        if self.clock.late():
            row.failed = "out of time"
            return
        try:
            with taking(row.path):
                self._fill(row, partial(run, *inputs), moved, right)
        except Exception as error:
            row.failed = f"{type(error).__name__}: {error}"[:300]
            if self.clock.cuda:
                torch.cuda.synchronize()

    def _fill(self, row: Row, run: Callable[[], Any], moved: float | None, right: list[Tensor] | None) -> None:
        first, second = flat(run()), flat(run())
        row.same_bits = all(torch.equal(x, y) for x, y in zip(first, second, strict=True))
        if right is not None:
            row.error = max(distance(x, y) for x, y in zip(first, right, strict=True))
        del first, second
        row.ms = self.clock.median(run)
        row.share_of_copy = None if moved is None else moved / (1e-3 * row.ms) / self.copy
        row.graph_ms = self.clock.replayed(run) if self.replay else None
        if row.graph_ms is not None and moved is not None:
            row.share_of_copy = moved / (1e-3 * row.graph_ms) / self.copy


def flat(out: Any) -> list[Tensor]:
    return [x.detach().clone() for x in (out if isinstance(out, tuple | list) else [out])]


def distance(x: Tensor, y: Tensor) -> float:
    return float((x.double() - y).norm() / y.norm().clamp(min=1e-30))


def exactly(run: Callable[..., Any], *inputs: Tensor) -> list[Tensor] | None:
    """The result in double precision by plain operations, or None where it does not fit."""
    try:
        with taking("reference"):
            return flat(run(*(x.detach().double().requires_grad_(x.requires_grad) for x in inputs)))
    except Exception:
        return None


def both_ways(run: Callable[..., Tensor]) -> Callable[..., tuple[Tensor, ...]]:
    """The operation and its derivative by all inputs that have one, for a fixed cotangent."""

    def forward_and_backward(*inputs: Tensor) -> tuple[Tensor, ...]:
        out = run(*inputs)
        cotangent = torch.ones_like(out) + 0.5 * out.detach()
        return (out, *torch.autograd.grad(out, [x for x in inputs if x.requires_grad], cotangent))

    return forward_and_backward


def compare(
    bench: Bench,
    label: tuple[str, str],
    run: Callable[..., Tensor],
    inputs: Sequence[Tensor],
    *,
    moved: tuple[float, float],
    paths: Sequence[str] = ("kernel", "cusparse", "reference"),
) -> None:
    """Forwards, and forwards and back, along every path; ``moved`` are the bytes of each direction."""
    graph, operation = label
    for suffix, whole, much in (("", run, moved[0]), (" and back", both_ways(run), sum(moved))):
        right = None if bench.clock.late() else exactly(whole, *inputs)
        for path in paths:
            bench.time((graph, operation + suffix, path), whole, inputs, moved=much, right=right)


def measure_products(bench: Bench, name: str, edges: Edges, random: Draw) -> None:
    n, m = edges.num_nodes, edges.num_edges
    for d in (64, 80, 128):
        moved = (4.0 * (m * (d + 3) + n * d), 4.0 * (m * (2 * d + 3) + m * (d + 3) + n * d))
        compare(
            bench, (name, f"aggregate d={d}"), partial(aggregate, edges=edges), (random(m), random(n, d)), moved=moved
        )
    for h, w in ((1, 64), (8, 16)):
        moved = (4.0 * m * (2 * h * w + h + 2), 8.0 * (m * (h * w + h + 2) + n * h * w))
        inputs = (random(n, h, w), random(n, h, w))
        compare(bench, (name, f"edge_dot {h}x{w}"), partial(edge_dot, edges=edges), inputs, moved=moved)


def attended(
    p: Tensor, q: Tensor, z: Tensor, *, edges: Edges, normalise: Normaliser, storage: torch.dtype | None = None
) -> Tensor:
    return attend(Pair(p, q), z, edges, normalise=normalise, storage=storage)


def measure_attention(bench: Bench, name: str, edges: Edges, random: Draw) -> None:
    n, m, d = edges.num_nodes, edges.num_edges, 80
    for h, w in ((1, 64), (8, 16)):
        inputs = (random(n, h, w), random(n, h, w), random(n, d))
        moved = (4.0 * m * (h * w + d + 3), 4.0 * m * (3 * h * w + 2 * d + 12))
        for by in (Rows(), Both()):
            run = partial(attended, edges=edges, normalise=by)
            label = (name, f"attend {by} {h}x{w} d={d}")
            compare(bench, label, run, inputs, moved=moved, paths=("fused", "kernel", "cusparse"))
        short = partial(attended, edges=edges, normalise=Rows(), storage=torch.bfloat16)
        compare(bench, (name, f"attend Rows(softmax) {h}x{w} d={d} bf16"), short, inputs, moved=moved, paths=("fused",))


def measure_layers(bench: Bench, name: str, edges: Edges, random: Draw) -> None:
    """A step of the flow, live and frozen, beside a layer of PyG's GAT: 80 channels, 8 heads."""
    z = random(edges.num_nodes, 80)
    a = ScaledDot(80, 128, heads=8).to(z.device)
    live = partial(BeltramiFlow(a).bind(z, edges), 0.0)
    with taking("kernel"):
        frozen = LinearFlow(a).bind(z.detach(), edges)
    layers: list[tuple[str, str, Callable[[Tensor], Tensor]]] = [
        ("live flow", "fused", live),
        ("live flow", "kernel", live),
        ("frozen flow", "kernel", frozen.operator),
        ("frozen flow", "cusparse", frozen.operator),
    ]
    try:
        from torch_geometric.nn import GATConv

        layers.append(("GATConv", "pyg", partial(gat_layer, GATConv(80, 10, heads=8).to(z.device), edges.edge_index)))
    except ImportError as error:
        bench.rows.append(Row(name, "GATConv", "pyg", failed=str(error)))
    for operation, path, run in layers:
        bench.time((name, operation, path), run, (z,))
        bench.time((name, operation + " and back", path), both_ways(run), (z,))


def gat_layer(gat: Any, edge_index: Tensor, z: Tensor) -> Tensor:
    out: Tensor = gat(z, edge_index)
    return out


def measure_variants(bench: Bench, name: str, edges: Edges, random: Draw) -> None:
    """Other tiles, other numbers of warps, and states that are carried along or not."""
    from beltrami.graph.ops.kernels import forward, product, task

    n, m = edges.num_nodes, edges.num_edges
    heads = (random(n, 8, 16), random(n, 8, 16), random(n, 80))
    one = (random(n, 1, 64), random(n, 1, 64), heads[2])
    run, moved = partial(attended, edges=edges, normalise=Rows()), 4.0 * m * 211
    with patch.object(forward, "CARRIED", 1024):
        bench.time((name, "attend 8x16, carried", "fused"), run, heads, moved=moved)
    with patch.object(forward, "CARRIED", 0):
        bench.time((name, "attend 1x64, not carried", "fused"), run, one, moved=4.0 * m * 147)
    for tile, warp in ((512, 256), (1024, 512), (1024, 1024), (2048, 1024)):
        with patch.object(task, "TILE", tile), patch.object(task, "WARP", warp):
            label = f"attend 8x16, tile {tile}, {warp} a warp"
            bench.time((name, label, "fused"), run, heads, moved=moved)
            bench.time((name, label + " and back", "fused"), both_ways(run), heads)
    a, z = random(m).detach(), random(n, 64).detach()
    for tile, warps in ((256, 1), (512, 2), (1024, 1), (1024, 2), (2048, 4)):
        with patch.object(product, "TILE", tile), patch.object(product, "WARPS", warps):
            label = f"d=64, tile {tile}, {warps} warps"
            sums, dots = partial(aggregate, edges=edges), partial(edge_dot, edges=edges)
            bench.time((name, "aggregate " + label, "kernel"), sums, (a, z), moved=4.0 * (67 * m + 64 * n))
            bench.time((name, "edge_dot " + label, "kernel"), dots, (z, z), moved=4.0 * m * 131)


def measure_pieces(bench: Bench, name: str, edges: Edges, random: Draw) -> None:
    """Rows cut into shorter and longer pieces."""
    n, m = edges.num_nodes, edges.num_edges
    a, z, p, q = random(m), random(n, 80), random(n, 8, 16), random(n, 8, 16)
    for longest in (32, 64, 256, 1024):
        with patch.object(pieces, "LONGEST", longest):
            again = Edges.build(edges.edge_index, num_nodes=n)
            sums, whole = partial(aggregate, edges=again), partial(attended, edges=again, normalise=Rows())
            bench.time((name, f"aggregate d=80, pieces of {longest}", "kernel"), sums, (a.detach(), z.detach()))
            bench.time((name, f"attend 8x16 and back, pieces of {longest}", "fused"), both_ways(whole), (p, q, z))


def measure_double(bench: Bench, name: str, edges: Edges, random: Draw) -> None:
    """Double precision, for its errors more than its times."""
    n, m = edges.num_nodes, edges.num_edges
    p, q, z, a = (random(*shape).detach().double() for shape in ((n, 8, 16), (n, 8, 16), (n, 80), (m,)))
    runs: list[tuple[str, str, Callable[..., Tensor], tuple[Tensor, ...]]] = [
        ("double: aggregate", "kernel", partial(aggregate, edges=edges), (a, z)),
        ("double: edge_dot", "kernel", partial(edge_dot, edges=edges), (p, q)),
        *(
            (f"double: attend {by}", "fused", partial(attended, edges=edges, normalise=by), (p, q, z))
            for by in (Rows(squareplus), Columns(softmax), Both(squareplus))
        ),
    ]
    for operation, path, run, inputs in runs:
        leaves = [x.clone().requires_grad_() for x in inputs]
        right = None if bench.clock.late() else exactly(both_ways(run), *leaves)
        bench.time((name, operation + " and back", path), both_ways(run), leaves, right=right)


def table(rows: list[Row]) -> str:
    def show(value: float | None, width: int, digits: str) -> str:
        return f"{'-' if value is None else format(value, digits):>{width}}"

    lines = [f"{'graph':11}{'operation':48}{'path':10}{'ms':>9}{'graph ms':>10}{'of copy':>9}{'error':>9}  bits"]
    for r in rows:
        numbers = show(r.ms, 9, ".4f") + show(r.graph_ms, 10, ".4f") + show(r.share_of_copy, 9, ".2f")
        numbers += show(r.error, 9, ".1e")
        bits = "-" if r.same_bits is None else "same" if r.same_bits else "DIFFER"
        lines.append(f"{r.graph:11}{r.operation:48}{r.path:10}{r.failed[:60] if r.failed else numbers + '  ' + bits}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=75.0, help="no measurement begins after this")
    parser.add_argument("--smoke", action="store_true", help="on the CPU, at toy size")
    options = parser.parse_args()
    device = "cpu" if options.smoke else "cuda"
    clock = Clock(device, until=time.perf_counter() + options.seconds)
    bench = Bench(clock, copy_bandwidth(device, megabytes=1 if options.smoke else 1024), replay=not options.smoke)
    generator = torch.Generator(device).manual_seed(0)

    def random(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, device=device).requires_grad_()

    sizes = TOY if options.smoke else SIZES
    graphs = {
        k: Edges.build(power_law(*size, seed=0).edge_index, num_nodes=size[0]).to(device) for k, size in sizes.items()
    }
    each = (measure_attention, measure_layers, measure_products, measure_pieces)
    stages = [(measure, name) for name in reversed(graphs) for measure in each]
    stages[4:4] = [(measure_variants, list(graphs)[-1]), (measure_double, next(iter(graphs)))]
    trouble = []
    for measure, name in stages:
        try:
            measure(bench, name, graphs[name], random)
        except Exception as error:
            trouble.append(f"{measure.__name__} {name}: {type(error).__name__}: {error}"[:300])
        about = {"device": torch.cuda.get_device_name() if device == "cuda" else "cpu", "torch": torch.__version__}
        rows = [asdict(row) for row in bench.rows]
        whole = about | {"copy_gigabytes_a_second": bench.copy / 1e9, "trouble": trouble, "rows": rows}
        options.out.write_text(json.dumps(whole, indent=1))
    print(table(bench.rows))
    print(f"copy: {bench.copy / 1e9:.0f} GB/s; {time.perf_counter() - clock.until + options.seconds:.0f} s; {trouble}")


if __name__ == "__main__":
    main()
