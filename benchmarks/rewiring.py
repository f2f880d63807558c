"""Rewiring at scale: time and peak memory of DIGL's top-k and of nearest neighbours on power-law graphs.

    python benchmarks/rewiring.py --threads 2

Each job runs in a process of its own, whose peak resident memory is that of the job with torch and the graph in it.
The largest size is that of ogbn-arxiv. On a sample of nodes, rows of DIGL are compared with the solved kernel and
neighbours with a search in double precision. Kernels are compiled before the clock starts; ``warm_up_seconds`` says how
long that took. Exact nearest neighbours (``knn``) take time O(n^2); ``knn-faiss`` is ``KNN(approximate=True)``. Rows
measured before stay in the file until they are measured again.
"""

import argparse
import json
import math
import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from beltrami.data import Dataset
from beltrami.data.synthetic import power_law
from beltrami.graph import Edges
from beltrami.graph.pagerank.kernel import personalised_pagerank
from beltrami.result import versions
from beltrami.stencil import KNN, Stencil, TopK
from beltrami.train import write_atomically

SIZES = (10_000, 30_000, 100_000, 169_343)
EDGES_PER_NODE = 1_166_243 / 169_343  # as ogbn-arxiv has
CHANNELS = 16
RESTART = 0.05
SAMPLE = 256
WARM_UP = 5000
STENCILS: dict[str, Callable[[int], Stencil]] = {
    "digl": lambda k: TopK(k, restart=RESTART),
    "knn": KNN,
    "knn-faiss": lambda k: KNN(k, approximate=True),
}


def rewire(kind: str, n: int, k: int, threads: int) -> dict[str, Any]:
    """One job: build the graph, rewire it, say how long that took and how much memory there ever was."""
    torch.set_num_threads(threads)
    data = power_law(n, round(EDGES_PER_NODE * n), seed=0, features=CHANNELS)
    edges = Edges.build(data.edge_index, num_nodes=n)
    start = time.perf_counter()
    small = power_law(WARM_UP, 3 * WARM_UP, seed=1, features=CHANNELS)
    STENCILS[kind](k)(small.x, Edges.build(small.edge_index, num_nodes=WARM_UP))
    warm_up, before = time.perf_counter() - start, _peak()
    stencil = STENCILS[kind](k)
    wall, cpu = time.perf_counter(), time.process_time()
    out = stencil(data.x, edges)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    row = {
        "stencil": kind,
        "k": k,
        "nodes": n,
        "edges": data.num_edges,
        "rewired_edges": out.num_edges,
        "seconds": round(wall, 2),
        "cpu_seconds": round(cpu, 2),
        "peak_mib": round(_peak()),
        "peak_mib_before": round(before),
        "warm_up_seconds": round(warm_up, 2),
        "threads": threads,
    }
    return {**row, **(compared_with_kernel(out, edges, k) if kind == "digl" else compared_with_distances(out, data, k))}


def compared_with_kernel(out: Edges, edges: Edges, k: int) -> dict[str, float]:
    """Share of the kernel's largest k found, and the largest error of a value, over a sample of rows."""
    nodes = _sample(edges.num_nodes)
    kernel = personalised_pagerank(edges.with_loops(1.0), nodes, restart=RESTART).T
    found, error = [], 0.0
    assert out.weight is not None
    for row, node in zip(kernel, nodes.tolist(), strict=True):
        begin, end = out.rows.ptr[node : node + 2].tolist()
        mine, largest = out.j[begin:end], row.topk(min(k, int((row > 0).sum()))).indices  # fewer in a small component
        found.append(len(set(mine.tolist()) & set(largest.tolist())) / len(largest))
        error = max(error, float((row[mine] - out.weight[begin:end]).abs().max()))
    return {"overlap": sum(found) / len(found), "worst_overlap": min(found), "value_error": error}


def compared_with_distances(out: Edges, data: Dataset, k: int) -> dict[str, float]:
    """Share of the nearest k in double precision that were found, over a sample of rows."""
    x = data.x.double()
    found = [_share(x, node, out, k) for node in _sample(data.num_nodes).tolist()]
    return {"overlap": sum(found) / len(found), "worst_overlap": min(found)}


def growth(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The exponent of n in the time of each stencil between its smallest and its largest size."""
    exponents = {}
    for kind in sorted({row["stencil"] for row in rows}):
        ours = sorted((row for row in rows if row["stencil"] == kind), key=lambda row: int(row["nodes"]))
        if len(ours) > 1:
            times = math.log(ours[-1]["cpu_seconds"] / ours[0]["cpu_seconds"])
            exponents[kind] = round(times / math.log(ours[-1]["nodes"] / ours[0]["nodes"]), 2)
    return exponents


def _share(x: Tensor, node: int, out: Edges, k: int) -> float:
    distance = (x - x[node]).square().sum(1)
    distance[node] = torch.inf
    begin, end = out.rows.ptr[node : node + 2].tolist()
    return len(set(out.j[begin:end].tolist()) & set(distance.topk(k, largest=False).indices.tolist())) / k


def _sample(n: int) -> Tensor:
    return torch.randperm(n, generator=torch.Generator().manual_seed(0))[:SAMPLE]


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # MiB, where the system counts in KiB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--stencils", nargs="+", choices=tuple(STENCILS), default=tuple(STENCILS))
    parser.add_argument("-k", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--date", default=time.strftime("%Y-%m-%d"))
    parser.add_argument("--out", type=Path, default=Path("results/bench/rewiring.json"))
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)  # the children read it when they start
    rows = json.loads(args.out.read_text())["rows"] if args.out.exists() else []
    for kind in args.stencils:
        for n in sorted(args.sizes):
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
                new = pool.submit(rewire, kind, n, args.k, args.threads).result()
            print(json.dumps(new), flush=True)
            others = [row for row in rows if (row["stencil"], row["nodes"]) != (kind, n)]
            rows = sorted([*others, new], key=lambda row: (row["stencil"], row["nodes"]))
            write(args.out, rows, date=args.date)


def write(out: Path, rows: Sequence[dict[str, Any]], *, date: str) -> None:
    report = {"date": date, "cores": os.cpu_count(), "versions": versions(), "growth": growth(rows), "rows": rows}
    write_atomically(out, (json.dumps(report, indent=2) + "\n").encode())


if __name__ == "__main__":
    main()
