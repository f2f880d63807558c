"""Measure the memory and the time of every mode of training, and fit the planner's cost models to them.

python benchmarks/plan_costs.py measure --device cuda    writes results/plan.json: an H200, three minutes
python benchmarks/plan_costs.py fit [--write]            prints the errors; --write makes planner/coefficients.py

Models are fitted on the sizes of the paper's seven graphs and on generated ones, and tested by leaving each of the
seven out.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from beltrami.config import RunConfig, override
from beltrami.config.run_cost import Sizes
from beltrami.data import Split
from beltrami.data.graph_folder import GraphFolder, write_graph_folder
from beltrami.data.synthetic import power_law
from beltrami.graph import Edges, SparseMatrix
from beltrami.graph.sparse_matrix import sparse_where_it_pays
from beltrami.lab.bench.measure import Timer
from beltrami.lab.bench.problem import SIZES, BenchProblem, timed_config
from beltrami.lab.bench.suite import variants
from beltrami.planner.workload import Workload

RECORD = Path("results/plan.json")
GENERATED = (  # nodes, undirected edges, features, channels, heads, width, time
    (3_000, 6_000, 1500, 64, 8, 64, 16.0),
    (20_000, 50_000, 300, 128, 2, 32, 8.0),
    (15_000, 400_000, 700, 64, 4, 32, 3.0),
    (100_000, 400_000, 128, 128, 2, 32, 4.0),
    (60_000, 1_500_000, 64, 64, 4, 64, 3.0),
    (400_000, 3_000_000, 128, 64, 2, 32, 4.0),
)
CLASSES, LABELLED, TIMES, RTOL = 8, 20, (1.0, 2.0, 4.0), 1e-4
STREAMED = ("diffusivity.kind=scaled-dot", "diffusivity.over=rows", "model.batch_norm=false", "stencil.add.kind=none")
SLOW = 0.1  # seconds of a step that is timed once
SHARES = (1.0, 0.5)  # of the memory of training with everything on the device


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["measure", "fit"])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--size", action="append", help="some of the sizes; all by default")
    parser.add_argument("--mode", action="append", choices=list(MODES), help="some of the modes; all by default")
    parser.add_argument("--out", type=Path, default=RECORD)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.command == "measure":
        measure(options)
    else:
        from plan_fit import fit_all

        record = json.loads(options.out.read_text())
        fit_all(record["rows"], device=record["device"], write=options.write)


def measure(options: argparse.Namespace) -> None:
    """Measure all modes on all sizes and write the record after each size."""
    name = torch.cuda.get_device_name() if options.device != "cpu" else "cpu"
    record: dict[str, Any] = {"command": "python benchmarks/plan_costs.py measure --device cuda", "device": name}
    record["rows"] = []
    for label, load in problems(options.device):
        if options.size and label not in options.size:
            continue
        start = time.perf_counter()
        problem = load()
        for mode, work in MODES.items():
            if options.mode and mode not in options.mode:
                continue
            begin = time.perf_counter()
            torch.cuda.empty_cache()
            try:
                for found in work(problem, options.device):
                    record["rows"].append({"size": label, "mode": mode, **found})
            except Exception as error:  # the other modes are still measured
                record["rows"].append({"size": label, "mode": mode, "error": f"{type(error).__name__}: {error}"[:300]})
            print(f"{label} {mode}: {time.perf_counter() - begin:.0f} s", flush=True)
        print(f"{label}: {time.perf_counter() - start:.0f} s", flush=True)
        options.out.write_text(json.dumps(record, indent=1) + "\n")


def problems(device: str) -> Iterator[tuple[str, Callable[[], BenchProblem]]]:
    """Yield the seven sizes, and generated ones."""
    for name in SIZES:
        yield name, lambda name=name: BenchProblem.load(name, device=device)  # type: ignore[misc]
    for number, sizes in enumerate(GENERATED):
        yield f"generated-{number}", lambda sizes=sizes: generated(*sizes, device=device)  # type: ignore[misc]


def generated(
    nodes: int, edges: int, features: int, channels: int, heads: int, width: int, time: float, *, device: str
) -> BenchProblem:
    data = power_law(nodes, edges, seed=0, features=features, classes=CLASSES)
    settings = [f"model.feat={channels}", f"diffusivity.heads={heads}", f"diffusivity.width={width}"]
    config = override(timed_config("computers"), [*settings, f"scheme.time={time}", "stencil.add.kind=none"])
    first = torch.cat([(data.y == c).nonzero()[:LABELLED, 0] for c in range(CLASSES)])
    return BenchProblem(
        name="generated",
        origin="generated",
        dataset=data.to(device),
        x=sparse_where_it_pays(data.x).to(device),
        edges=Edges.build(data.edge_index, num_nodes=nodes).to(device),
        train=torch.isin(torch.arange(nodes), first).to(device),
        config=config,
    )


def workload(problem: BenchProblem, config: RunConfig) -> Workload:
    """Return the workload of a configuration on a problem, whose graph has no neighbours added."""
    data, sparse = problem.dataset, isinstance(problem.x, SparseMatrix)
    nonzeros = len(problem.x.values) if isinstance(problem.x, SparseMatrix) else 0
    sizes = Sizes(data.num_nodes, 2 * data.num_edges, data.num_features, 0, data.num_classes, not sparse, nonzeros)
    return Workload.of(override(config, ["stencil.add.kind=none"]), sizes)


def peak(make: Callable[[], Callable[[], object]], device: str) -> tuple[int, Callable[[], object]]:
    """Return the bytes that a function and three calls of what it returns allocate at most, and what it returns."""
    if device == "cpu":
        work = make()
        work()
        return 1, work
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    work = make()
    for _ in range(2 if once(work, device) > SLOW else 3):
        work()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before, work


def row(w: Workload, make: Callable[[], Callable[[], object]], device: str, *, extra: int = 0) -> dict[str, Any]:
    """Return the measurement of a training step; ``extra``: bytes that were allocated before and belong to it."""
    found, work = peak(make, device)
    taken = once(work, device)
    if taken < SLOW:
        taken = Timer(device, seconds=0.05, rounds=3).compare({"step": work})["step"]
    return {"workload": asdict(w), "bytes": found + extra, "seconds": taken}


def once(work: Callable[[], object], device: str) -> float:
    """Return the seconds of one call."""
    if device != "cpu":
        torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def problem_bytes(problem: BenchProblem) -> int:
    """Return the bytes of features, labels and edges on the device."""
    edges, x, data = problem.edges, problem.x, problem.dataset
    tensors = [data.x, data.edge_index, data.y, problem.train, edges.j, edges.i, edges.permutation]
    patterns = [edges.rows, edges.columns, *([x.rows, x.columns] if isinstance(x, SparseMatrix) else [])]
    tensors += [t for part in patterns for t in (part.ptr, part.index, part.edge)]
    tensors += [x.values] if isinstance(x, SparseMatrix) else []
    return sum(t.numel() * t.element_size() for t in tensors)


def whole(problem: BenchProblem, device: str) -> Iterator[dict[str, Any]]:
    """Measure training with everything on one device."""
    extra = problem_bytes(problem)
    for config in variants(problem.config):

        def make(config: RunConfig = config) -> Callable[[], object]:
            return problem.step(config, record=None)

        yield row(workload(problem, config), make, device, extra=extra)


def workers(problem: BenchProblem, device: str) -> Iterator[dict[str, Any]]:
    """Measure training by parts and by columns in one process."""
    from beltrami.distributed.parted_model import PartedModel
    from beltrami.distributed.partition import partition_nodes
    from beltrami.distributed.workers import Workers

    part = partition_nodes(problem.edges.to("cpu")).to(device)
    one = Workers(device=torch.device(device))
    for config in variants(problem.config):

        def make(config: RunConfig = config) -> Callable[[], object]:
            model, inputs = problem.model(config)
            parted = PartedModel(model, inputs, part, one)
            return step_of(parted, lambda: parted.run(inputs).logits, problem)

        yield row(workload(problem, config), make, device, extra=problem_bytes(problem))


def blocks(problem: BenchProblem, device: str) -> Iterator[dict[str, Any]]:
    """Measure training in blocks within shares of the memory of training with everything on the device."""
    from beltrami.scale.streamed_model import open_streamed

    config = override(variants(problem.config)[0], STREAMED)
    w, everything = workload(problem, config), problem_bytes(problem) + 100 * 2**20
    everything += 4 * w.nodes * w.channels * (2 * w.evaluations + 10)
    with tempfile.TemporaryDirectory() as name:
        folder = folder_of(problem, Path(name) / "graph")
        for share in SHARES:
            planned: dict[str, int] = {}

            def make(limit: int = int(share * everything), planned: dict[str, int] = planned) -> Callable[[], object]:
                streamed, inputs = open_streamed(problem.model(config)[0], folder, memory=limit, device=device)
                for each in ("bytes", "resident_edges", "columns", "limit"):
                    planned[f"planned_{each}"] = getattr(inputs.plan, each)
                return step_of(streamed, lambda: streamed.run(inputs).logits, problem)

            yield {**row(w, make, device), "share": share, **planned}


def diffuse(problem: BenchProblem, device: str) -> Iterator[dict[str, Any]]:
    """Measure the flow of the features that the recipe `precomputed` applies once."""
    from beltrami.scale.diffuse import diffuse_columns, plan_diffusion

    with tempfile.TemporaryDirectory() as name:
        folder = folder_of(problem, Path(name) / "graph")
        assert folder.x is not None
        x = folder.x
        out = [Path(name) / f"{k}.npy" for k in range(len(TIMES))]
        limit = 2**27 + 4 * x.size
        plan = plan_diffusion(
            folder, columns=x.shape[1], times=len(TIMES), dtype=torch.float32, memory=limit, device=device
        )

        def work() -> None:
            diffuse_columns(folder, x, times=TIMES, out=out, rtol=RTOL, memory=limit, device=device)

        w = replace(workload(problem, variants(problem.config)[0]), channels=x.shape[1])
        yield {**row(w, lambda: work, device), "planned_bytes": plan.bytes, "planned_columns": plan.columns}


def step_of(model: nn.Module, scores: Callable[[], torch.Tensor], problem: BenchProblem) -> Callable[[], object]:
    """Return a training step of a model."""
    optimiser = torch.optim.Adam(model.parameters(), lr=0.005)
    nodes = problem.train.nonzero()[:, 0]

    def step() -> None:
        model.train()
        model.zero_grad()
        nn.functional.cross_entropy(scores()[nodes], problem.dataset.y[nodes]).backward()
        optimiser.step()

    return step


def folder_of(problem: BenchProblem, path: Path) -> GraphFolder:
    data, train = problem.dataset.to("cpu"), problem.train.cpu()
    val = torch.zeros_like(train)
    val[(~train).nonzero()[:100, 0]] = True
    return write_graph_folder(path, data, Split(train, val, ~train & ~val, "benchmark", 0))


MODES: dict[str, Callable[[BenchProblem, str], Iterator[dict[str, Any]]]] = {
    "whole": whole,
    "workers": workers,
    "blocks": blocks,
    "diffuse": diffuse,
}

if __name__ == "__main__":
    main()
