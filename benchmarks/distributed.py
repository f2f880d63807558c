"""Train on 1, 2 and 4 processes and compare the losses of every epoch, and a run of which a worker is killed.

    BELTRAMI_DATA=... python benchmarks/distributed.py results/distributed.json --keep build/distributed

Every process has one thread. For each dataset, flow and precision: ``whole`` is the ordinary training of one process,
the others are trainings by parts. Differences are the largest over all epochs, relative to the value. Results are
kept in the folder of ``--keep``, and those that are there are not computed again.
"""

import argparse
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reference_runs import digest

SIMPLE = (  # without what takes minutes to prepare, positions and edges between similar nodes
    *("train.consistency.kind=none", "train.self_training=0", "train.ema=0", "train.validate_every=5"),
    *("position.kind=none", "stencil.add.kind=none"),
)
LIVE = ("flow.kind=live", "scheme.kind=adaptive", "scheme.solver=bosh3", "scheme.rtol=0.01", "scheme.atol=0.01")
FLOWS = {"frozen": SIMPLE, "live": (*SIMPLE, *LIVE, "scheme.time=2", "train.time_grid.multiple=1.5")}
DATASETS, PRECISIONS, SIZES = ("pubmed", "computers"), ("float64", "float32"), (1, 2, 4)
PARTS = 8


def train(dataset: str, flow: str, precision: str, epochs: int, parted: bool) -> dict[str, Any]:
    """Return the curves of a training in the processes that there are."""
    import torch

    from beltrami.config import load_recipe, override
    from beltrami.config.build import build_training
    from beltrami.distributed import PartedModel, join_workers, partition_nodes
    from beltrami.run import load_problem
    from beltrami.train import Epoch, fit, seeded

    torch.set_num_threads(1)
    config = override(load_recipe("blend", dataset), [*FLOWS[flow], f"train.epochs={epochs}"])
    problem = load_problem(config)
    curves: dict[str, list[float]] = {"loss": [], "val_loss": [], "val_metric": []}

    def keep(epoch: Epoch) -> None:
        score = epoch.scores[0]
        for name, value in zip(curves, (epoch.losses[0], -score.minus_loss, score.metric), strict=True):
            curves[name].append(value)

    with join_workers(timeout=1800.0) as workers, seeded(config.seed):
        model = problem.model(config).to(getattr(torch, precision))
        inputs = model.prepare(problem.x, problem.edges, pos=problem.pos)
        trained, about = model, {}
        if parted:
            part = partition_nodes(inputs.edges, PARTS)
            cut = int((part[inputs.edges.i] != part[inputs.edges.j]).sum())
            about = {"largest_part": int(part.bincount().max()), "edges_between_parts": cut / inputs.edges.num_edges}
            trained = PartedModel(model, inputs, part, workers)
        found = fit(trained, inputs, problem.dataset.y, problem.split, build_training(config.train), callbacks=[keep])
    weights = torch.cat([weight.detach().flatten().double() for weight in model.parameters()])
    return {**curves, "evaluations": found.stats.evaluations, **about, "weights": weights.tolist()}


def spawn(arguments: Sequence[str], size: int) -> None:
    """Run this file in ``size`` processes that meet on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(size), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, *arguments]
    ranks = [{**os.environ, **address, "RANK": str(rank)} for rank in range(size)]
    processes = [subprocess.Popen(command, env=env) for env in ranks]
    if max(process.wait() for process in processes):
        raise SystemExit(f"a worker failed: {' '.join(arguments)}")


def curves_of(folder: Path, case: Sequence[str], kind: str, epochs: int) -> dict[str, Any]:
    """Return the curves of a case, ``whole`` or by a number of processes, from their file or by a training."""
    path = folder / ("-".join((*case, str(epochs), kind)) + ".json")
    if not path.exists():
        print(path.stem, flush=True)
        spawn(["--worker", str(path), *case, kind, str(epochs)], 1 if kind == "whole" else int(kind))
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def largest_difference(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the largest difference relative to the first values."""
    assert len(one) == len(other)
    return max((abs(a - b) / max(abs(a), 1e-300) if a != b else 0.0) for a, b in zip(one, other, strict=True))


def compare(folder: Path, case: Sequence[str], epochs: int) -> dict[str, Any]:
    """Return how far the curves of a case on several processes, and on the whole graph, are from those on one."""
    one = curves_of(folder, case, "1", epochs)
    row: dict[str, Any] = dict(zip(("dataset", "flow", "precision"), case, strict=True))
    row |= {name: one[name] for name in ("largest_part", "edges_between_parts", "evaluations")}
    row |= {"epochs": len(one["loss"]), "last_loss": one["loss"][-1]}
    for kind in ("whole", *map(str, SIZES[1:])):
        other = curves_of(folder, case, kind, epochs)
        names = ("loss", "val_loss", "val_metric")
        differences = {name: largest_difference(one[name], other[name]) for name in names}
        row[f"{kind}_against_1"] = {**differences, "equal_weights": one["weights"] == other["weights"]}
    return row


def killed(epochs: int) -> dict[str, Any]:
    """Return the result of a run by the command line of which a worker is killed, beside that of an undisturbed run."""
    found: dict[str, Any] = {"dataset": "digits", "recipe": "blend", "workers": 2, "epochs": epochs}
    for name in ("undisturbed", "killed"):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder)
            command = [sys.executable, "-m", "beltrami", "train", "digits", "--set", f"train.epochs={epochs}"]
            command += ["--workers", "2", "--checkpoint", "2", "--out", folder]
            process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
            if name == "killed":
                found["epochs_before"] = kill_worker(process, out)
            _, lines = process.communicate()
            assert process.returncode == 0, lines
            result = json.loads((out / "result.json").read_text())
            found[name] = {key: result[key] for key in ("val_accuracy", "test_accuracy", "best_epoch", "epochs")}
            found[name]["weights"] = digest(out / "model.safetensors")
            found["line"] = next((line for line in lines.splitlines() if "ended by" in line), "")
    found["equal"] = found["undisturbed"] == found["killed"]
    return found


def kill_worker(launcher: subprocess.Popen[str], out: Path) -> int:
    """Kill the second worker in an epoch after the first checkpoint; return how many epochs there were before."""
    while not (out / "checkpoint.safetensors").exists():
        assert launcher.poll() is None
        time.sleep(0.01)
    epochs = len((out / "epochs.jsonl").read_text().splitlines())
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    os.kill(int(children[-1]), signal.SIGKILL)
    return epochs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--keep", type=Path, default=Path("build/distributed"))
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--only", action="append", help="such as pubmed-frozen-float64; may be repeated")
    asked = parser.parse_args()
    asked.keep.mkdir(parents=True, exist_ok=True)
    cases = [(dataset, flow, each) for each in PRECISIONS for flow in FLOWS for dataset in DATASETS]
    cases = [case for case in cases if asked.only is None or "-".join(case) in asked.only]
    end = asked.keep / f"killed-{asked.epochs}.json"
    if not end.exists():
        end.write_text(json.dumps(killed(asked.epochs)))
    rows = [compare(asked.keep, case, asked.epochs) for case in cases]
    import torch

    about = {"parts": PARTS, "threads": 1, "torch": torch.__version__, "python": platform.python_version()}
    report = {**about, "rows": rows, "killed": json.loads(end.read_text())}
    asked.out.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    if sys.argv[1] == "--worker":
        path, *case, kind, epochs = sys.argv[2:]
        if kind == "whole":
            os.environ.pop("RANK", None)
        dataset, flow, precision = case
        curves = train(dataset, flow, precision, int(epochs), kind != "whole")
        if os.environ.get("RANK", "0") == "0":
            Path(path).write_text(json.dumps(curves))
    else:
        main()
