"""The commands about cost: plans for large graphs, and measurements of training and inference."""

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from beltrami.cli.option import Device, check_device, check_file

GPUS = "80GiB"


def plan(
    graph: Annotated[str | None, Argument(help="A dataset, or a graph folder; leave it out to give the sizes.")] = None,
    nodes: Annotated[float | None, Option(help="Nodes, such as 1e7, of a graph that is not here.")] = None,
    edges: Annotated[float | None, Option(help="Its undirected edges, such as 5e8.")] = None,
    features: Annotated[int | None, Option(help="Its columns of features.")] = None,
    gpus: Annotated[
        str | None, Option(help="The GPUs, such as `80GiB x 4`; by default the GPUs of this machine, or one of 80GiB.")
    ] = None,
    host: Annotated[
        str | None, Option(help="Memory of the host, such as 512GiB; the free memory of this machine by default.")
    ] = None,
    live: Annotated[bool, Option("--live", help="For live attention, evaluated at every step.")] = False,
) -> None:
    """Predict the memory and time of training on a graph in every mode, and name the mode to use.

    Predictions are for training on an H200: memory and times were measured there. Modes are everything on one device,
    several devices (`--workers`), blocks of columns and edges (`--memory`), and features that are diffused once
    (`--recipe precomputed`). docs/scale.md has the measurements.

    Examples:
    - `beltrami plan ogbn-arxiv`
    - `beltrami plan my-graph --gpus "24GiB"`
    - `beltrami plan --nodes 1e8 --edges 1e9 --features 128 --gpus "80GiB x 4" --host 1TiB`
    """
    from beltrami.memory import free_memory, parse_bytes
    from beltrami.planner.graph_sizes import workload_of, workload_of_sizes
    from beltrami.planner.plan import make_plan, parse_devices
    from beltrami.report.plan_terminal import print_plan

    sizes = {"--nodes": nodes, "--edges": edges, "--features": features}
    missing = [name for name, value in sizes.items() if value is None]
    if graph is not None and len(missing) < len(sizes):
        raise ValueError("give a graph, or `--nodes`, `--edges` and `--features`, not both.")
    if graph is None and missing:
        raise ValueError(f"a plan needs a graph, or its sizes: {', '.join(missing)} missing.")
    if graph is not None:
        workload = workload_of(graph, live=live)
    else:
        workload = workload_of_sizes(int(nodes or 0), int(edges or 0), features or 0, live=live)
    devices = parse_devices(gpus or _gpus())
    memory = free_memory() if host is None else parse_bytes(host, option="--host")
    print_plan(make_plan(workload, devices, host=memory), graph=graph or "GRAPH")


def _gpus() -> str:
    """Return the GPUs of this machine, or one of 80 GiB where there is none."""
    import torch

    if not torch.cuda.is_available():
        return GPUS
    memory = min(torch.cuda.get_device_properties(k).total_memory for k in range(torch.cuda.device_count()))
    return f"{memory / 2**30:.1f}GiB x {torch.cuda.device_count()}"


def bench(
    suite: Annotated[str, Option(help="train, infer, loop, rivals, memory, kernels, ensemble or scaling.")] = "train",
    device: Device = "cpu",
    size: Annotated[list[str] | None, Option(help="Datasets whose sizes to measure at; all seven by default.")] = None,
    threads: Annotated[int | None, Option(help="Threads on the CPU; torch's own number by default.")] = None,
    out: Annotated[Path | None, Option(help="Where to save the table, as JSON.")] = None,
) -> None:
    """Measure what training and inference cost, compared with PyG's GAT in the same process.

    Graphs are the real ones if their files are available, and power-law graphs of the same size otherwise.

    - `train`, `infer`: a step of training, or class scores for every node, relative to a GAT of two layers.
    - `rivals`: the GAT itself: eager, compiled by torch, and captured as a CUDA graph.
    - `memory`: the GPU memory of a training step.
    - `kernels`: the hot operations against the vendor's library and plain torch, and against the copy bandwidth.
    - `ensemble`: many seeds as one program, against one after the other.
    - `scaling`: how the cost grows with the number of edges.

    Example: `beltrami bench --suite train --size cora --size computers --device cuda --out bench.json`
    """
    import torch

    from beltrami.lab.bench.problem import SIZES
    from beltrami.lab.bench.suite import run_suite
    from beltrami.report.progress import display
    from beltrami.report.terminal import print_measurements
    from beltrami.train import write_atomically

    if threads is not None:
        if threads < 1:
            raise ValueError(f"`--threads` needs at least 1; got {threads}.")
        torch.set_num_threads(threads)
    if out is not None:
        check_file(out)
    command = " ".join(("beltrami", *sys.argv[1:]))
    with display(f"measuring {suite}"):
        report = run_suite(suite, device=check_device(device), sizes=size or SIZES, command=command)
    print_measurements(report.rows, title=f"{report.suite} on {report.device}")
    if out is not None:
        write_atomically(out, report.to_json().encode())
