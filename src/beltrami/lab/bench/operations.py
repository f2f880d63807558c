"""The suites ``kernels`` (single operations by each backend) and ``scaling`` (cost by the number of edges)."""

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from beltrami.diffusivity import ScaledDot
from beltrami.flow import BeltramiFlow, Flow, LinearFlow
from beltrami.graph import Edges, PairScore, Rows, aggregate, attend, edge_dot
from beltrami.graph.ops import use
from beltrami.lab.bench.measure import BACKENDS, Measurement, Timer, Work, copy_bandwidth
from beltrami.lab.bench.problem import BenchProblem
from beltrami.model.captured_graph import replayed
from beltrami.train import seeded

CHANNELS, HEADS, WIDTH = 64, 4, 16  # of the operations
DEGREE, STATE = 20, 32  # of the graphs whose size grows, and of the state on them
ON_GPU = (10**5, 10**6, 10**7, 10**8)
ON_CPU = (10**4, 10**5, 10**6)


def kernels(device: str, sizes: Sequence[str]) -> list[Measurement]:
    """Measure each operation and its derivative; bytes count a node's row once for each edge that reads it. On a GPU
    ``recorded`` is our kernel as a CUDA graph, without the host's part, and bandwidth is computed from it."""
    bandwidth = copy_bandwidth(device)
    rows = []
    for size in sizes:
        edges = BenchProblem.load(size, device=device).edges.with_loops(1.0)
        for name, operation in _operations(edges).items():
            rows.append({"size": size, "operation": name} | operation.measure(device, bandwidth))
    return rows


class _Operation:
    """A function of tensors that need gradients, and the bytes that it and its derivative move."""

    def __init__(self, run: Callable[..., Tensor], inputs: Sequence[Tensor], moved: tuple[float, float]) -> None:
        self.run, self.inputs = run, [x.requires_grad_() for x in inputs]
        self.bytes = {"forward": moved[0], "backward": moved[1]}

    def works(self, name: str, *, record: bool = False) -> dict[str, Work]:
        """Return the forward pass, and forward and backward passes together, by a backend."""
        gradient = torch.randn_like(self.run(*self.inputs))

        def forward() -> object:
            with use(BACKENDS[name]), torch.no_grad():
                return self.run(*self.inputs)

        def both() -> object:
            with use(BACKENDS[name]), torch.enable_grad():
                return torch.autograd.grad(self.run(*self.inputs), self.inputs, gradient)

        works = {"forward": forward, "both": both}
        return {way: replayed(work, device=gradient.device, capture=record) for way, work in works.items()}

    def measure(self, device: str, bandwidth: float) -> Measurement:
        recorded = self.works("ours", record=device.startswith("cuda"))
        works = {f"{name}_{way}": work for name in BACKENDS for way, work in self.works(name).items()}
        works |= {f"recorded_{way}": work for way, work in recorded.items()}
        taken = Timer(device, seconds=0.02).compare(works)
        row: Measurement = {}
        for name in ("recorded", *BACKENDS):
            forward, both = taken[f"{name}_forward"], taken[f"{name}_both"]
            row |= {f"{name}_forward_s": forward, f"{name}_backward_s": max(both - forward, 1e-9)}  # if below noise
        for way, moved in self.bytes.items():
            row[f"{way}_gb"] = round(moved / 1e9, 4)
            row[f"{way}_share_of_copy"] = round(moved / row[f"recorded_{way}_s"] / bandwidth, 3)
            row[f"{way}_library_ratio"] = round(row[f"ours_{way}_s"] / row[f"library_{way}_s"], 3)
        return row | {"copy_gb_per_s": round(bandwidth / 1e9, 1)}


def _operations(edges: Edges) -> dict[str, _Operation]:
    n, m, d = edges.num_nodes, edges.num_edges, CHANNELS
    draw = partial(torch.randn, device=edges.device)
    read, written, once = 4.0 * m * d, 4.0 * n * d, 4.0 * m  # bytes: a row per edge, a row per node, a number per edge
    scores = 4.0 * m * HEADS * WIDTH
    return {
        "aggregate": _Operation(
            lambda a, z: aggregate(a, z, edges),
            (draw(m), draw(n, d)),
            (read + written + 2 * once, 3 * read + written + 4 * once),
        ),
        "edge_dot": _Operation(
            lambda p, q: edge_dot(p, q, edges),
            (draw(n, d), draw(n, d)),
            (2 * read + 2 * once, 2 * read + 2 * written + 4 * once),
        ),
        "attend": _Operation(
            lambda p, q, z: attend(PairScore(p, q), z, edges, normalise=Rows()),
            (draw(n, HEADS, WIDTH), draw(n, HEADS, WIDTH), draw(n, d)),
            (read + scores + written + once, 3 * read + 4 * scores + 3 * written + 4 * once),
        ),
    }


def scaling(device: str, sizes: Sequence[str]) -> list[Measurement]:
    """Measure an evaluation of the flow and its derivative on random graphs of more and more edges. Each row has the
    exponent of growth since the row before; the last row has the exponent over the whole range."""
    rows: list[Measurement] = []
    for edges in ON_GPU if device.startswith("cuda") else ON_CPU:
        row: Measurement = {"edges": edges, "nodes": edges // DEGREE}
        try:
            row |= _evaluation(edges // DEGREE, device)
        except (RuntimeError, MemoryError) as error:
            rows.append(row | {"error": str(error).strip().split("\n")[0]})
            break
        rows.append(row | (_growth(rows[-1], row) if rows else {}))
    done = [row for row in rows if "error" not in row]
    if len(done) > 1:
        rows.append({"edges": f"{done[0]['edges']} to {done[-1]['edges']}"} | _growth(done[0], done[-1]))
    return rows


def _evaluation(nodes: int, device: str) -> Measurement:
    generator = torch.Generator(device).manual_seed(0)
    edge_index = torch.randint(nodes, (2, nodes * DEGREE), device=device, generator=generator)
    edges = Edges.build(edge_index, num_nodes=nodes)
    z = torch.randn(nodes, STATE, device=device, requires_grad=True)
    with seeded(0):
        diffusivity = ScaledDot(STATE, 32, heads=4).to(device)
    flows: dict[str, Flow] = {"frozen": LinearFlow(diffusivity), "live": BeltramiFlow(diffusivity)}
    works = {}
    for name, flow in flows.items():
        f = flow.bind(z.detach(), edges)
        out = f(0.0, z)
        works[f"{name}_forward"] = lambda f=f: f(0.0, z.detach())
        works[f"{name}_backward"] = lambda out=out: torch.autograd.grad(out.sum(), z, retain_graph=True)
    return {f"{name}_s": taken for name, taken in Timer(device, seconds=0.05, rounds=5).compare(works).items()}


def _growth(before: Measurement, now: Measurement) -> Measurement:
    more = math.log(now["edges"] / before["edges"])
    names = [name for name in now if name.endswith("_s")]
    return {name.replace("_s", "_exponent"): round(math.log(now[name] / before[name]) / more, 3) for name in names}
