"""Where the time of a captured training step goes on a GPU: its kernels, and one product beside the device's bandwidth.

    python benchmarks/step_profile.py [SIZE ...] [--out results/bench/profile-h200.json]

For every size the wall time of a step of the frozen flow, the time and number of its kernels by name, and for one step
of the recurrence forwards and backwards its time, the bytes that it reads and writes if nothing is cached, and the
bandwidth of a copy.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from beltrami.graph.ops.recurrence import LinearRecurrence
from beltrami.lab.bench.measure import Timer, copy_bandwidth
from beltrami.lab.bench.problem import SIZES, BenchProblem
from beltrami.lab.bench.suite import variants

REPEATS = 5
SHOWN = 20  # kernels by name


def profiled(step: Callable[[], object]) -> dict[str, Any]:
    """Return the wall time of a step in ms, and the time of its kernels."""
    for _ in range(4):
        step()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(4 * REPEATS):
        step()
    torch.cuda.synchronize()
    wall = (time.perf_counter() - start) / (4 * REPEATS)
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as found:
        for _ in range(REPEATS):
            step()
        torch.cuda.synchronize()
    events = sorted(found.key_averages(), key=lambda event: -event.self_device_time_total)
    kernels = [
        {"name": event.key[:80], "ms": event.self_device_time_total / REPEATS / 1e3, "launches": event.count / REPEATS}
        for event in events
    ]
    sums = {f"all_{name}": sum(kernel[name] for kernel in kernels) for name in ("ms", "launches")}
    return {"wall_ms": 1e3 * wall, **sums, "kernels": kernels[:SHOWN]}


def products(problem: BenchProblem, channels: int, storage: torch.dtype) -> dict[str, float]:
    """Return the times of one step of the recurrence, forwards and backwards, and the bytes that it moves."""
    edges = problem.edges.with_loops(1.0)
    n, m = edges.num_nodes, edges.num_edges
    y, b, q, out = (torch.randn(1, n, channels, device="cuda").to(storage) for _ in range(4))
    a, sums, one = torch.rand(1, m, device="cuda"), torch.zeros(1, m, device="cuda"), torch.ones(1, device="cuda")
    step = LinearRecurrence(edges)
    taken = Timer("cuda").compare(
        {
            "forward": lambda: step.advance(out, a, y, factor=2.0, previous=(-1.0, b)),
            "backward": lambda: step.pull(
                out, a, y, factor=2.0, previous=(-1.0, b), cotangent=(one, q), edge_sums=(q, sums)
            ),
        }
    )
    row, entry = channels * y.element_size(), 3 * 4  # of an entry: its column, its edge, its value
    forward = m * (row + entry) + 2 * n * row
    moved = {"forward": forward, "backward": forward + 2 * n * row + 2 * 4 * m}
    return {
        key: value
        for name, seconds in taken.items()
        for key, value in {f"{name}_ms": 1e3 * seconds, f"{name}_bytes_per_s": moved[name] / seconds}.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", nargs="*", default=["cora", "pubmed", "ogbn-arxiv"], choices=SIZES)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for size in options.size:
        problem = BenchProblem.load(size, device="cuda")
        frozen = variants(problem.config)[0]
        channels = problem.model(frozen)[0].xi.linear.in_features
        row: dict[str, Any] = {"size": size, "channels": channels, "copy_bytes_per_s": copy_bandwidth("cuda")}
        for storage in (torch.float32, torch.bfloat16):
            step = problem.step(frozen, record=None, storage=storage)
            row[str(storage)] = profiled(step) | products(problem, channels, storage)
        rows.append(row)
    report = json.dumps({"device": torch.cuda.get_device_name(), "rows": rows}, indent=2)
    print(report)
    if options.out is not None:
        options.out.write_text(report + "\n")


if __name__ == "__main__":
    main()
