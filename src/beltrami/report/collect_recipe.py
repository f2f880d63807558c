"""A run of ``beltrami train NAME --recipe ...`` as the data of its report."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor

from beltrami.auto.baselines import run_baselines
from beltrami.config.build_evolution import terminal_time
from beltrami.config.spec import RunConfig
from beltrami.data.catalogue import class_names
from beltrami.errors import DataError
from beltrami.file_limits import limited_lines
from beltrami.graph import Edges
from beltrami.predict.explain import explain
from beltrami.predict.shares import Explanation
from beltrami.report.flow_data import ShownModel
from beltrami.report.run_data import PARTS, Floats, Integers, NodeData, RunData
from beltrami.report.terminal import run_facts
from beltrami.run import SavedRun, load_run
from beltrami.train import Classification

Parts = tuple[RunData, ShownModel, Callable[[int], Explanation], Callable[[], Any]]
LOG = "epochs.jsonl"
COLUMNS = {
    "epoch": "epoch",
    "loss": "loss",
    "metric": "validation",
    "val_loss": "validation loss",
    "time": "flow time",
    "best_metric": "best validation",
    "best_time": "best flow time",
    "evaluations": "evaluations",
}
"""The columns of the log, and their names in a report."""
MOST_ENTRIES = 10_000_000  # of the features for which baselines are fitted


def read_recipe(folder: Path, *, shown_as: str, device: str) -> Parts:
    """Return the data of a run, its model, and the functions that explain it and compare it with baselines."""
    run = load_run(folder, device=device)
    result, dataset, config = run.result, run.problem.dataset, run.problem.config
    names, task = class_names(dataset.name, dataset.num_classes), run.problem.task
    masks = parts_of(run.problem.split.masks)
    shown = ShownModel(
        run.model, run.inputs, result.best_time, last_time(config), task, "classes", names, dataset.y, masks
    )
    epochs, notes = read_log(folder / LOG)
    features, size = f"{dataset.num_features:,} features", f"{dataset.num_nodes:,} nodes, {dataset.num_edges:,} edges"
    data = RunData(
        title=f"{result.dataset} / {result.recipe}",
        folder=shown_as,
        kind="classes",
        names=names,
        metric=result.metric_name,
        facts={"graph": f"{size}, {features}, {dataset.num_classes} classes", **run_facts(result)},
        settings=json.loads(config.to_json()),
        scores=shown.scores(run.logits),
        nodes=_nodes(run, masks),
        epochs=epochs,
        solver={
            "evaluations of f in training": float(result.evaluations["forward"]),
            "evaluations of f in training, backward": float(result.evaluations["backward"]),
            "epochs": float(result.epochs),
            "seconds of training": result.train_seconds,
        },
        notes=notes,
    )
    return data, shown, partial(_explain, run), partial(_baselines, run, data, task)


def parts_of(masks: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the masks of a split by the names of a report, in their order."""
    named = {"validation" if name == "val" else name: mask for name, mask in masks.items()}
    return {name: named[name] for name in PARTS if name in named}


def part_numbers(masks: dict[str, Tensor], num_nodes: int) -> Integers:
    """Return the part of each node, (n,), as its number in ``PARTS``."""
    part = numpy.zeros(num_nodes, dtype=numpy.int8)
    for name, mask in masks.items():
        part[mask.cpu().numpy()] = PARTS.index(name)
    return part


def neighbours(edges: Edges) -> Integers:
    """Return the number of other nodes that an edge joins each node to, in either direction, (n,)."""
    i, j = edges.i.cpu(), edges.j.cpu()
    low, high = torch.minimum(i, j)[i != j], torch.maximum(i, j)[i != j]
    keys = (low * edges.num_nodes + high).unique()
    ends = torch.cat((keys // edges.num_nodes, keys % edges.num_nodes))
    counts: Integers = torch.bincount(ends, minlength=edges.num_nodes).numpy()
    return counts


def last_time(config: RunConfig) -> float:
    """Return the last time at which validation looked; 0 for a model without time."""
    return terminal_time(config.scheme) * float(getattr(config.train.time_grid, "multiple", 1.0))


def read_log(path: Path) -> tuple[dict[str, Floats], list[str]]:
    """Return the columns of a log of epochs, and a note if it is missing or a part of it cannot be read."""
    rows, bad = [], 0
    try:
        with path.open(errors="replace") as file:
            for line in limited_lines(file, what=str(path)):
                row = _row(line)
                rows += [] if row is None else [row]
                bad += row is None
    except FileNotFoundError:
        return {}, [f"The run has no log of epochs, {path.name}: there are no learning curves."]
    except (OSError, DataError) as error:
        return {}, [f"The log of epochs cannot be read ({error}): there are no learning curves."]
    notes = [f"{bad:,} line{'s'[: bad > 1]} of the log of epochs cannot be read and were left out."] if bad else []
    return {name: numpy.array([row[k] for row in rows]) for k, name in enumerate(COLUMNS.values()) if rows}, notes


def _row(line: str) -> list[float] | None:
    """Return the numbers of a line in the order of ``COLUMNS``, NaN for those that are null; None if it is damaged."""
    try:
        values = json.loads(line)
        return [float("nan") if values[name] is None else float(values[name]) for name in COLUMNS]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _nodes(run: SavedRun, masks: dict[str, Tensor]) -> NodeData:
    dataset = run.problem.dataset
    probabilities = run.logits.softmax(-1).cpu().numpy()
    return NodeData(
        ids=[str(node) for node in range(dataset.num_nodes)],
        part=part_numbers(masks, dataset.num_nodes),
        label=dataset.y.cpu().numpy(),
        predicted=run.logits.argmax(-1).cpu().numpy(),
        probabilities=probabilities,
        degree=numpy.bincount(dataset.edge_index[0].cpu().numpy(), minlength=dataset.num_nodes),
    )


def _explain(run: SavedRun, node: int) -> Explanation:
    return explain(run.model, run.inputs, node, time=run.result.best_time)


def _baselines(run: SavedRun, data: RunData, task: Classification) -> list[tuple[str, float, float | None]]:
    """Return the scores of the run and, on graphs of moderate size, of three baselines, fitted on the same split."""
    first = (run.result.recipe, data.scores["validation"], data.scores.get("test"))
    problem = run.problem
    if problem.dataset.x.numel() > MOST_ENTRIES:
        return [first]
    results, _ = run_baselines(problem.x, problem.edges, problem.dataset.y, [problem.split], task=task)
    return [first, *((each.name, each.validation, each.test) for each in results)]
