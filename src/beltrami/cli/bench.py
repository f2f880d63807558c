"""The command ``bench``."""

import sys
from pathlib import Path
from typing import Annotated

from typer import Option

from beltrami.cli.option import Device, check_device, check_file


def bench(
    suite: Annotated[str, Option(help="train, infer, rivals, memory, kernels, ensemble or scaling.")] = "train",
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

    from beltrami.lab.bench import SIZES, run_suite
    from beltrami.report.terminal import print_measurements
    from beltrami.train import write_atomically

    if threads is not None:
        if threads < 1:
            raise ValueError(f"`--threads` needs at least 1; got {threads}.")
        torch.set_num_threads(threads)
    if out is not None:
        check_file(out)
    command = " ".join(("beltrami", *sys.argv[1:]))
    report = run_suite(suite, device=check_device(device), sizes=size or SIZES, command=command)
    print_measurements(report.rows, report.columns, title=f"{report.suite} on {report.device}")
    if out is not None:
        write_atomically(out, report.to_json().encode())
