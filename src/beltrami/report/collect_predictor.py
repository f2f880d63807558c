"""A run of ``beltrami train`` on a user's graph, or of the recipe auto, as the data of its report."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor

from beltrami.data.catalogue import class_names
from beltrami.data.labelled_split import labelled
from beltrami.predict.predictions import ClassPredictions, NumberPredictions, Predictions
from beltrami.predict.predictor import Predictor
from beltrami.predict.shares import Explanation
from beltrami.predict.trained_models import prepare, task_of
from beltrami.report.collect_recipe import Parts, last_time, neighbours, part_numbers, parts_of
from beltrami.report.fit_facts import calibration_facts, chosen_model, fit_results, gain_in_words, metric_name
from beltrami.report.flow_data import ShownModel
from beltrami.report.run_data import NodeData, RunData
from beltrami.train import Classification, Task

COVERAGE, COVERAGE_LABELS = 0.9, 9  # of the sets, and the calibration labels that it needs


def read_predictor(folder: Path, *, shown_as: str, device: str) -> Parts:
    """Return the data of a predictor, its first model, and the functions that explain it and name its baselines."""
    predictor = Predictor.load(folder)
    kind, graph, config = predictor.targets.kind, predictor.graph, predictor.ensemble.config
    names = _names(predictor)
    shown = _shown(predictor, names, device)
    conformal = predictor.calibration.conformal
    enough = conformal is None or len(conformal.scores) >= COVERAGE_LABELS
    predictions = predictor.predict(coverage=COVERAGE if enough else None, device=device)
    chosen, says = chosen_model(predictor)
    edges = f"{int(neighbours(graph.edges).sum()) // 2:,} edges"
    if graph.by_features:
        edges += f" between each node and its {graph.neighbours} nearest by the features"
    sign = -1.0 if kind == "numbers" else 1.0
    facts = {
        "graph": f"{graph.num_nodes:,} nodes, {edges}, {graph.x.shape[1]:,} features",
        "chosen model": f"{chosen}: {says}",
        "comparison": gain_in_words(predictor),
        "models": _models(predictor),
        "terminal time": " and ".join(f"{time:.3g}" for time in dict.fromkeys(predictor.ensemble.times)),
        **calibration_facts(predictor),
    }
    notes = list(predictions.notes)
    if predictions.guarantee is not None:
        notes.append(predictions.guarantee.in_words())
    if predictions.reached is not None and not bool(predictions.reached.all()):
        notes.append(f"No label reaches {int((~predictions.reached).sum()):,} nodes: they have no prediction.")
    data = RunData(
        title=f"{Path(graph.name).stem} / {chosen}",
        folder=shown_as,
        kind=kind,
        names=names,
        metric=metric_name(predictor),
        facts=facts,
        settings=json.loads(config.to_json()),
        scores=_scores(predictor, shown, device),
        nodes=_nodes(predictor, predictions),
        notes=notes,
    )
    results = fit_results(predictor).items()
    baselines = [(name, sign * value, None if test is None else sign * test) for name, (value, test) in results]
    return data, shown, partial(_explain, predictor), lambda: baselines


def _models(predictor: Predictor) -> str:
    """Return how many models predict, and which of them is drawn."""
    parts, folds = len(predictor.ensemble.parts), len(predictor.ensemble.models)
    each = ", one for each fold" if folds > 1 else ""
    if parts > 1:
        return f"{parts} are averaged{each}; the one of the largest share is drawn and explained"
    return f"{folds}{each}; their mean predicts, and the first is drawn" if each else "one"


def _names(predictor: Predictor) -> tuple[str, ...]:
    """Return the names of the classes; those of a named dataset, whose classes are numbers, where they are known."""
    names = tuple(predictor.targets.names)
    numbers = tuple(str(c) for c in range(len(names)))
    return class_names(predictor.graph.name, len(names)) if names == numbers else names


def _shown(predictor: Predictor, names: tuple[str, ...], device: str) -> ShownModel:
    """Return the first model with the parts of its own split."""
    ensemble, calibration, split = predictor.ensemble, predictor.calibration, predictor.splits[0]
    model, (x, edges) = ensemble.models[0].to(device), prepare(ensemble.config, predictor.graph, device=device)
    centre, scale = (calibration.centre or (0.0,))[0], (calibration.scale or (1.0,))[0]
    task, y = _task(predictor), predictor.targets.y
    if predictor.targets.kind == "numbers":
        y = (y - centre) / scale
    masks = {name: mask.to(device) for name, mask in parts_of(split.masks).items()}
    return ShownModel(
        model, model.prepare(x, edges), ensemble.times[0], last_time(ensemble.config), task, predictor.targets.kind,
        names, y.to(device), masks, calibration.temperature, centre, scale,
    )  # fmt: skip


def _task(predictor: Predictor) -> Task:
    """Return the task by which the models were chosen."""
    task = task_of(predictor.targets)
    if predictor.record.get("balanced"):
        return Classification.balanced(task.num_outputs, predictor.targets.y[predictor.trained_on])
    return task


def _masks(predictor: Predictor) -> dict[str, Tensor]:
    """Return the parts of the split of all models together: with folds, all nodes that they saw are training nodes."""
    masks = parts_of(predictor.splits[0].masks)
    if len(predictor.splits) == 1:
        return masks
    return {name: predictor.trained_on if name == "train" else m for name, m in masks.items() if name != "validation"}


def _scores(predictor: Predictor, shown: ShownModel, device: str) -> dict[str, float]:
    """Return the scores of all models together; that of validation is the mean over the folds, as it was recorded."""
    outputs = predictor.ensemble.outputs(predictor.graph, device=device).mean(0)
    part = ShownModel(
        shown.model, shown.inputs, shown.time, shown.last, shown.task, shown.kind, shown.names, shown.y.cpu(),
        _masks(predictor), shown.temperature, shown.centre, shown.scale,
    )  # fmt: skip
    scores, record = part.scores(outputs), predictor.record
    validation = record["validation"] * (-1.0 if shown.kind == "numbers" else 1.0)
    found = {"train": scores.pop("train"), "validation": validation}
    return {**found, **{name: value for name, value in scores.items() if name != "validation"}}


def _nodes(predictor: Predictor, predictions: Predictions) -> NodeData:
    y, known = predictor.targets.y, labelled(predictor.targets.y)
    reached = None if predictions.reached is None else predictions.reached.numpy()
    shared: dict[str, Any] = {
        "ids": list(predictor.graph.ids),
        "part": part_numbers(_masks(predictor), predictor.graph.num_nodes),
        "degree": neighbours(predictor.graph.edges),
        "reached": reached,
    }
    if isinstance(predictions, NumberPredictions):
        interval = None if predictions.interval is None else torch.stack(predictions.interval, dim=1).numpy()
        predicted = predictions.values.numpy()
        return NodeData(**shared, label=y[:, 0].numpy(), predicted=predicted, probabilities=None, interval=interval)
    assert isinstance(predictions, ClassPredictions)
    p = predictions.probabilities
    label = y if y.dim() == 1 else torch.where(known[:, None], y, -1)
    predicted = (p.argmax(1) if predictions.exclusive else p > 0.5).numpy().astype(numpy.int64)
    sets = None if predictions.sets is None else predictions.sets.numpy()
    return NodeData(
        **shared, label=label.long().numpy(), predicted=predicted, probabilities=p.numpy(), sets=sets
    )  # fmt: skip


def _explain(predictor: Predictor, node: int) -> Explanation:
    return predictor.ensemble.explain(predictor.graph, node, exclusive=predictor.exclusive)
