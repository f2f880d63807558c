"""Kernels: the hot operations, forward and backward, by every path, and their bytes against the copy bandwidth."""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from beltrami.graph import Edges, PairScore, Rows, aggregate, attend, edge_dot, ops
from beltrami.lab.bench.problem import BenchProblem
from beltrami.lab.bench.report import Measurement
from beltrami.lab.bench.timer import Timer, Work, copy_bandwidth
from beltrami.train.cuda_graph import replayed

CHANNELS, HEADS, WIDTH = 64, 4, 16
BACKENDS = {"ours": "auto", "library": "vendor", "reference": "reference"}  # column names and backends of ``ops.use``


def kernels(device: str, sizes: Sequence[str]) -> list[Measurement]:
    """Seconds of each operation and of its derivative; bytes count a node's row once for each edge that reads it.

    On a GPU ``recorded`` is ours as a CUDA graph, so that the device is timed and not the host, and its bytes count.
    """
    bandwidth = copy_bandwidth(device)
    rows = []
    for size in sizes:
        edges = BenchProblem.load(size, device=device).edges.with_loops(1.0)
        for name, operation in _operations(edges).items():
            rows.append({"size": size, "operation": name} | _measure(operation, device, bandwidth))
    return rows


class _Operation:
    """A function of tensors that want gradients, and the bytes that it and its derivative move."""

    def __init__(self, run: Callable[..., Tensor], *inputs: Tensor, forward: float, backward: float) -> None:
        self.run, self.inputs = run, [x.requires_grad_() for x in inputs]
        self.bytes = {"forward": forward, "backward": backward}

    def works(self, path: str, *, record: bool = False) -> dict[str, Work]:
        """Forwards, and forwards and back."""
        gradient = torch.randn_like(self.run(*self.inputs))

        def forward() -> object:
            with ops.use(BACKENDS[path]), torch.no_grad():
                return self.run(*self.inputs)

        def both() -> object:
            with ops.use(BACKENDS[path]), torch.enable_grad():
                return torch.autograd.grad(self.run(*self.inputs), self.inputs, gradient)

        device = gradient.device
        return {
            "forward": replayed(forward, device=device, capture=record),
            "both": replayed(both, device=device, capture=record),
        }


def _operations(edges: Edges) -> dict[str, _Operation]:
    n, m, d = edges.num_nodes, edges.num_edges, CHANNELS
    draw = partial(torch.randn, device=edges.device)
    read, written, once = 4.0 * m * d, 4.0 * n * d, 4.0 * m  # rows by edges, rows by nodes, a number an edge
    scores = 4.0 * m * HEADS * WIDTH
    return {
        "aggregate": _Operation(
            lambda a, z: aggregate(a, z, edges),
            draw(m),
            draw(n, d),
            forward=read + written + 2 * once,
            backward=3 * read + written + 4 * once,
        ),
        "edge_dot": _Operation(
            lambda p, q: edge_dot(p, q, edges),
            draw(n, d),
            draw(n, d),
            forward=2 * read + 2 * once,
            backward=2 * read + 2 * written + 4 * once,
        ),
        "attend": _Operation(
            lambda p, q, z: attend(PairScore(p, q), z, edges, normalise=Rows()),
            draw(n, HEADS, WIDTH),
            draw(n, HEADS, WIDTH),
            draw(n, d),
            forward=read + scores + written + once,
            backward=3 * read + 4 * scores + 3 * written + 4 * once,
        ),
    }


def _measure(operation: _Operation, device: str, bandwidth: float) -> Measurement:
    recorded = operation.works("ours", record=device.startswith("cuda"))
    works = {f"{path}_{way}": work for path in BACKENDS for way, work in operation.works(path).items()}
    works |= {f"recorded_{way}": work for way, work in recorded.items()}
    taken = Timer(device, seconds=0.02).compare(works)
    row: Measurement = {}
    for path in ("recorded", *BACKENDS):
        forward, both = taken[f"{path}_forward"], taken[f"{path}_both"]
        row |= {f"{path}_forward_s": forward, f"{path}_backward_s": max(both - forward, 1e-9)}  # a nanosecond: noise
    for way, moved in operation.bytes.items():
        row[f"{way}_gb"] = round(moved / 1e9, 4)
        row[f"{way}_share_of_copy"] = round(moved / row[f"recorded_{way}_s"] / bandwidth, 3)
        row[f"{way}_library_ratio"] = round(row[f"ours_{way}_s"] / row[f"library_{way}_s"], 3)
    return row | {"copy_gb_per_s": round(bandwidth / 1e9, 1)}
