"""Train on a user's graph: from the table to a predictor that knows how sure it is."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from beltrami.arguments import Count, DeviceName, Positive, Seed, Share, checked
from beltrami.auto.baselines import BaselineResult, run_baselines, run_linear
from beltrami.auto.kept_members import KeptMembers, about_problem
from beltrami.auto.linear import TIMES
from beltrami.auto.selection import Attempt, Selection, linear_selection, select
from beltrami.auto.table_graph import choose_graph
from beltrami.data import Dataset, Split
from beltrami.data.graph_table import GraphTable
from beltrami.data.labelled_graph import LabelledGraph
from beltrami.data.labelled_split import CALIBRATION, FOLDS, check_training, hold_out, labelled, split_labels
from beltrami.data.preprocess import Preprocessing
from beltrami.data.target import Targets, read_targets
from beltrami.graph.sparse_matrix import sparse_where_it_pays
from beltrami.predict.conformal import Conformal, ScoreKind
from beltrami.predict.predictor import Calibration, Predictor
from beltrami.predict.probability import fit_temperature, match_confidence
from beltrami.predict.trained_models import fitting_threads, task_of
from beltrami.result import versions
from beltrami.train import Classification, Task, read_test

BUDGET = 60.0  # seconds
UNKNOWN_LABELS = 0.2  # keeps the temperature from certainty where a few validation nodes are all right
MATCHED_LABELS = 100  # of fewer validation labels all may be right by chance, and confidence would be certainty

Report = Callable[[Attempt | BaselineResult], None]


@checked
def fit_graph(
    table: GraphTable,
    *,
    task: str | None = None,
    budget: Positive = BUDGET,
    fast: bool = False,
    average: bool = False,
    balanced: bool = False,
    calibration: Share = CALIBRATION,
    seed: Seed = 0,
    device: DeviceName = "cpu",
    folds: Count = FOLDS,
    baselines: bool = True,
    report: Report = lambda result: None,
    checkpoint: Path | None = None,
) -> Predictor:
    """Train on a graph and return its predictor: the best of a portfolio by validation, with calibrated confidence.

    Args:
        table: the graph, as :func:`beltrami.data.graph_reader.read_graph` returns it.
        task: classes, labels or numbers; by default what the label column holds.
        budget: seconds for the portfolio; baselines and preprocessing come on top.
        fast: fit linear diffusion alone, in seconds.
        average: average the portfolio, weighted by validation, in place of keeping the best: for one class a node, with
            100 validation labels or more. Predictions take the time of several models.
        balanced: let every class count the same, however few of its nodes are labelled.
        calibration: share of the labels that are set aside for prediction sets.
        seed: of the splits and of the weights.
        folds: of the cross-validation where labels are few.
        baselines: run the baselines too, for the report; nothing is chosen by them.
        report: told of every baseline and every member of the portfolio when it is done.
        checkpoint: file in which trained members are kept; the members in it are not trained again.
    """
    targets = read_targets(table.labels, kind=task)
    check_targets(targets, balanced=balanced, average=average)
    if fast and average:
        raise ValueError("`fast` trains one model, and `average` averages several: leave one of them out.")
    preprocessing = Preprocessing.learn(table.columns, table.x, ids=table.ids)
    times: Sequence[float] = TIMES
    splits = split_labels(targets.y, seed=seed, calibration=calibration, column=table.split, folds=folds)
    if targets.kind != "numbers":
        check_training(targets.names, targets.y, splits)
    if table.edge_index is None and not preprocessing.nodes:
        chosen = choose_graph(table, targets, splits)
        graph, preprocessing, times = chosen.graph, chosen.preprocessing, chosen.times
    else:
        graph = LabelledGraph.of_table(table, preprocessing, targets)
    options: dict[str, Any] = {"budget": budget, "fast": fast, "balanced": balanced, "seed": seed, "device": device}
    options |= {"times": times, "baselines": baselines, "average": average}
    return fit_labelled(graph, splits, preprocessing, **options, report=report, checkpoint=checkpoint)


def fit_dataset(
    dataset: Dataset,
    split: Split,
    *,
    calibration: float = CALIBRATION,
    budget: float = BUDGET,
    fast: bool = False,
    average: bool = False,
    seed: int = 0,
    device: DeviceName = "cpu",
    report: Report = lambda result: None,
    checkpoint: Path | None = None,
) -> Predictor:
    """As :func:`fit_graph`, for a named dataset with a split; a share of its validation nodes is set aside."""
    graph, preprocessing = LabelledGraph.of_dataset(dataset)
    splits = [hold_out(split, share=calibration)]
    options: dict[str, Any] = {"budget": budget, "fast": fast, "average": average, "seed": seed, "device": device}
    return fit_labelled(graph, splits, preprocessing, **options, report=report, checkpoint=checkpoint)


def check_targets(targets: Targets, *, balanced: bool = False, average: bool = False) -> None:
    """Refuse targets that nothing can be learned from, or that the options do not suit."""
    if targets.kind == "classes" and len(targets.names) < 2:
        found = f"all labels are {targets.names[0]!r}" if targets.names else "no node has a label"
        raise ValueError(f"{found}: at least two classes are needed.")
    if targets.kind == "numbers" and len(targets.names) > 1:
        raise ValueError(f"{len(targets.names)} columns of numbers are given: predict one at a time.")
    if balanced and targets.kind != "classes":
        raise ValueError(f"`balanced` weights classes, and the task is {targets.kind}: leave it out.")
    if average and targets.kind != "classes":
        raise ValueError(f"`average` needs one class for each node, and the task is {targets.kind}: leave it out.")
    if average and balanced:
        raise ValueError("`average` chooses its weights by the accuracy over all nodes: leave it or `balanced` out.")


def fit_labelled(
    graph: LabelledGraph,
    splits: Sequence[Split],
    preprocessing: Preprocessing,
    *,
    budget: float = BUDGET,
    fast: bool = False,
    average: bool = False,
    balanced: bool = False,
    seed: int = 0,
    device: DeviceName = "cpu",
    times: Sequence[float] = TIMES,
    baselines: bool = True,
    report: Report = lambda result: None,
    checkpoint: Path | None = None,
) -> Predictor:
    """As :func:`fit_graph`, for a graph whose features are preprocessed and whose labels are split.

    ``times`` are those from which linear diffusion chooses.
    """
    targets = graph.targets
    assert targets is not None
    y, centre, scale = _training_targets(targets, splits)
    task = task_of(targets)
    if balanced and isinstance(task, Classification):
        train = torch.stack([split.train | split.val for split in splits]).any(0)
        task = Classification.balanced(task.num_outputs, y[train])
    with fitting_threads(graph.num_nodes):
        x = sparse_where_it_pays(graph.x)
        shared: dict[str, Any] = {"task": task, "times": times, "balanced": balanced}
        if baselines:
            results, linear = run_baselines(x, graph.edges, y, splits, **shared, report=report)
        else:
            result, linear = run_linear(x, graph.edges, y, splits, **shared)
            results = [result]
        if fast:
            selection = linear_selection(graph, linear, seed)
        else:
            kept = None
            if checkpoint is not None:
                options = {"budget": budget, "balanced": balanced, "seed": seed, "task": str(task)}
                kept = KeptMembers(checkpoint, about_problem(graph, y, splits, **options))
            shared = {"task": task, "budget": budget, "average": average, "seed": seed, "device": device}
            selection = select(graph, y, splits, linear, **shared, report=report, kept=kept)
    outputs = selection.ensemble.outputs(graph, device=device)
    calibration = _calibrate(outputs, targets, splits, centre, scale)
    record = _record(selection, results, outputs, y, splits, task, scale)
    return Predictor(selection.ensemble, graph, tuple(splits), preprocessing, calibration, record)


def _training_targets(targets: Targets, splits: Sequence[Split]) -> tuple[Tensor, tuple[float, ...], tuple[float, ...]]:
    """Return targets for training, 0 where unknown; numbers are centred and scaled, with their centre and scale."""
    known = labelled(targets.y)
    if targets.kind != "numbers":
        return torch.where(known if targets.y.dim() == 1 else known[:, None], targets.y, 0), (), ()
    seen = targets.y[splits[0].train | splits[0].val]
    centre, scale = seen.mean(0), seen.std(0, correction=0)
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    y = torch.where(known[:, None], (targets.y - centre) / scale, 0.0)
    return y, tuple(centre.tolist()), tuple(scale.tolist())


def _calibrate(
    outputs: Tensor,
    targets: Targets,
    splits: Sequence[Split],
    centre: tuple[float, ...],
    scale: tuple[float, ...],
) -> Calibration:
    """Fit the temperature on the validation nodes of every split, and the scores on the calibration nodes."""
    aside, mean = splits[0].calibration, outputs.mean(0)
    aside = aside if aside is not None and bool(aside.any()) else None
    if targets.kind == "numbers":
        values, truth = mean[:, 0] * scale[0] + centre[0], targets.y[:, 0]
        residuals = None if aside is None else Conformal.fit(values, truth, calibration=aside, kind="residual")
        return Calibration(1.0, centre, scale, residuals)
    validated = torch.cat([out[split.val] for out, split in zip(outputs, splits, strict=True)])
    truth = torch.cat([targets.y[split.val] for split in splits])
    find = match_confidence if targets.kind == "classes" and len(truth) >= MATCHED_LABELS else fit_temperature
    temperature = find(validated, truth, unknown_labels=UNKNOWN_LABELS)
    if aside is None:
        return Calibration(temperature)
    kind: ScoreKind = "threshold" if targets.kind == "classes" else "labels"
    probabilities = task_of(targets).probabilities(mean / temperature)
    return Calibration(temperature, conformal=Conformal.fit(probabilities, targets.y, calibration=aside, kind=kind))


def _record(
    selection: Selection,
    baselines: Sequence[BaselineResult],
    outputs: Tensor,
    y: Tensor,
    splits: Sequence[Split],
    task: Task,
    scale: tuple[float, ...],
) -> dict[str, Any]:
    """Return how the predictor was found, as plain values; metrics of numbers are in the units of the labels."""
    unit = scale[0] if scale else 1.0
    test = read_test(outputs.mean(0), y, splits[0], task=task) * unit if bool(splits[0].test.any()) else None
    sizes = {name: int(mask.sum()) for name, mask in splits[0].masks.items()}
    return {
        "chosen": selection.name,
        "weights": dict(selection.weights),
        "metric": type(task).__name__,
        "validation": selection.score.metric * unit,
        "test": test,
        "splits": len(splits),
        "nodes": sizes,
        "attempts": [asdict(attempt) for attempt in selection.attempts],
        "baselines": [asdict(baseline) for baseline in baselines],
        "versions": versions(),
    }
