"""Run configurations: from the dataset to the result, one or many at once, and back from the folder of a run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from beltrami import train
from beltrami.arguments import AnyPath, DeviceName, checked
from beltrami.config.build import build_classifier, build_training, check_settings
from beltrami.config.build_evolution import build_prior
from beltrami.config.cost_check import check_cost, explained_memory, sizes_of
from beltrami.config.limits import check_node_counts
from beltrami.config.parser import read_config
from beltrami.config.recipe.recipes import search_count
from beltrami.config.run_cost import RunCost
from beltrami.config.spec import ConfigFile, RunConfig
from beltrami.config.spec_graph import InputEdgesSpec, StencilSpec
from beltrami.data import Dataset, Progress, Split, make_split
from beltrami.data.dataset import even_rows
from beltrami.data.file import write_atomically
from beltrami.data.store import cached_stencil, load_stencil
from beltrami.errors import DataError, SolverError
from beltrami.graph import Edges, SparseMatrix
from beltrami.graph.sparse_matrix import sparse_where_it_pays
from beltrami.model import Classifier, Inputs
from beltrami.precompute import positions_of, read_dataset, resolve_files
from beltrami.result import Accuracies, RunResult, result_of_fit
from beltrami.run_folder import CHECKPOINT, begin_to_save, check_digests, digests
from beltrami.stencil import tf_idf
from beltrami.train.callback import AnyCallback

CONFIG, WEIGHTS = "config.json", "model.safetensors"


@dataclass(frozen=True)
class Problem:
    """A dataset with its split, inputs, graph and positions, on a device; the graph may come from a file."""

    config: RunConfig  # that the problem was made for, with its files resolved
    dataset: Dataset
    split: Split
    x: Tensor | SparseMatrix
    edges: Edges
    pos: Tensor | SparseMatrix | None
    cost: RunCost | None = None  # what a training was estimated to need
    graph: str = ""  # fingerprint of the dataset's graph

    @property
    def task(self) -> train.Classification:
        """The classes of the dataset, scored as its published results are."""
        return train.Classification.of_dataset(self.dataset, self.split)

    def model(self, config: RunConfig) -> Classifier:
        """Return a new model for this problem, from the current random state."""
        positions = 0 if self.pos is None else self.pos.shape[1]
        widths = {"features": self.x.shape[1], "positions": positions, "num_classes": self.dataset.num_classes}
        return build_classifier(config, **widths).to(self.edges.device)


@checked
def check_run(
    config: RunConfig, *, device: DeviceName = "cpu", progress: Progress | None = None
) -> tuple[RunConfig, Dataset, Split, RunCost]:
    """Return a configuration with its files resolved, its dataset and split, and what a run would cost; refuse one that
    cannot be made, or does not fit into the free memory. Nothing is trained."""
    config = resolve_files(config)
    dataset = read_dataset(config.dataset, component=config.data.component, progress=progress)
    check_node_counts(config, dataset.num_nodes)
    split = make_split(dataset, protocol=config.data.protocol, seed=config.data.split_seed)
    cost = check_cost(config, sizes_of(config, dataset), device=device)
    return config, dataset, split, cost


@checked
def load_problem(config: RunConfig, *, device: DeviceName = "cpu", progress: Progress | None = None) -> Problem:
    """Resolve the files of a configuration, load its dataset, split it and encode positions."""
    config, dataset, split, cost = check_run(config, device=device, progress=progress)
    edges = Edges.build(dataset.edge_index, num_nodes=dataset.num_nodes)
    pos, graph = positions_of(config.position, edges), f"{edges.fingerprint % 2**64:016x}"
    if config.stencil.kind == "file":
        edges = load_stencil(Path(config.stencil.path), edges)
    scaling = config.data.features
    x = dataset.x if scaling == "raw" else even_rows(dataset.x, 1.0 if scaling == "unit" else None)
    dataset, inputs = dataset.to(device), sparse_where_it_pays(x).to(device)
    edges = similarity_edges(config.stencil, dataset.x, edges.to(device))
    positions = None if pos is None else sparse_where_it_pays(pos).to(device)
    return Problem(config, dataset, split.to(device), inputs, edges, positions, cost, graph)


def on_split(problem: Problem, config: RunConfig) -> Problem:
    """Return the problem on the split of a configuration."""
    split = make_split(problem.dataset.to("cpu"), protocol=config.data.protocol, seed=config.data.split_seed)
    return replace(problem, split=split.to(problem.dataset.y.device))


@checked
def run_config(
    config: RunConfig,
    *,
    device: DeviceName = "cpu",
    problem: Problem | None = None,
    callbacks: Sequence[AnyCallback] = (),
    checkpoints: train.Checkpoints | None = None,
    parted: Callable[[Classifier, Inputs], Classifier] | None = None,
) -> tuple[RunResult, Classifier]:
    """Train one configuration and evaluate it: every choice by validation, the test labels read once. A ``problem``
    that is given has been loaded from a configuration that was checked. ``checkpoints`` as for ``train.fit``. With
    ``parted``, the model that it returns is trained, such as a ``PartedModel``, which has the weights of the model."""
    if problem is None:
        check_settings(config)
        problem = load_problem(config, device=device)
    with train.seeded(config.seed), explained_memory(problem.cost, device=str(problem.edges.device)):
        model = problem.model(config)
        inputs, training = model.prepare(problem.x, problem.edges, pos=problem.pos), build_training(config.train)
        y, split, task = problem.dataset.y, problem.split, problem.task
        trained = model if parted is None else parted(model, inputs)
        found = train.fit(trained, inputs, y, split, training, task=task, callbacks=callbacks, checkpoints=checkpoints)
        model.fitted = trained.fitted
    return evaluate_fit(config, problem, model, found), model


@checked
def run_configs(
    configs: Sequence[RunConfig], *, device: DeviceName = "cpu", callbacks: Sequence[AnyCallback] = ()
) -> list[tuple[RunResult, Classifier] | SolverError]:
    """As :func:`run_config` for configurations that are equal up to ``seed`` and ``data.split_seed``, trained as one
    program; a run that fails gives its error. On a GPU memory grows with the number of runs."""
    if len({replace(config, seed=0, data=replace(config.data, split_seed=0)) for config in configs}) != 1:
        raise ValueError("run_configs needs configurations that differ by `seed` and `data.split_seed` alone.")
    check_settings(configs[0])
    first = load_problem(configs[0], device=device)
    problems, models = [on_split(first, config) for config in configs], []
    for config in configs:
        with train.seeded(config.seed):
            models.append(first.model(config))
    inputs, training = models[0].prepare(first.x, first.edges, pos=first.pos), build_training(configs[0].train)
    splits = [problem.split for problem in problems]
    found = train.fit_many(models, inputs, first.dataset.y, splits, training, task=first.task, callbacks=callbacks)
    return [
        fit if isinstance(fit, SolverError) else (evaluate_fit(config, problem, model, fit), model)
        for config, problem, model, fit in zip(configs, problems, models, found, strict=True)
    ]


def evaluate_fit(config: RunConfig, problem: Problem, model: Classifier, found: train.Fit) -> RunResult:
    """Return the result of a trained model; the test labels are read here."""
    y, split, task = problem.dataset.y, problem.split, problem.task
    inputs = model.prepare(problem.x, problem.edges, pos=problem.pos)
    logits = train.predict(model, inputs, time=found.best.time)
    shares = train.per_class_accuracy(logits[split.test], y[split.test], model.num_classes)
    accuracies = Accuracies(
        val=100 * float(task.metric(logits[split.val], y[split.val])),
        test=100 * train.read_test(logits, y, split, task=task),
        per_class=[None if share is None else 100 * share for share in shares],
    )
    result = result_of_fit(config, model, found, accuracies, dataset=config.dataset, split=split.facts, device=y.device)
    return replace(
        result,
        attention_spread=model.attention_spread(inputs),
        tried=search_count(config),
        graph=problem.graph,
        metric=problem.dataset.metric,
    )


@checked
def save_run(
    folder: AnyPath, config: ConfigFile, result: RunResult, model: Classifier, *, files: Sequence[str] = ()
) -> RunResult:
    """Write the configuration, the weights and, last, the result into ``folder``, delete the checkpoint and return the
    result with the digests of the files. ``files``: the names of further files of the run, which are there already."""
    begin_to_save(folder := Path(folder))
    write_atomically(folder / CONFIG, config.to_json().encode())
    train.save_weights(model, folder / WEIGHTS)
    result = replace(result, files=digests(folder, (CONFIG, WEIGHTS, *files)))
    write_atomically(folder / "result.json", result.to_json().encode())
    (folder / CHECKPOINT).unlink(missing_ok=True)
    return result


def read_result(folder: Path) -> RunResult:
    """Return the result of the run in a folder; files that do not belong together are refused."""
    result = RunResult.read(folder / "result.json")
    check_digests(folder, result.files)
    return result


@dataclass(frozen=True, eq=False)
class SavedRun:
    """A finished run, as read from its folder: its model on its problem, and its outputs (n, classes)."""

    result: RunResult
    problem: Problem
    model: Classifier
    inputs: Inputs
    logits: Tensor  # at the time that was chosen


@checked
def load_run(folder: AnyPath, *, device: DeviceName = "cpu", progress: Progress | None = None) -> SavedRun:
    """Return the run in a folder; files that do not belong together, or data that have changed, are refused."""
    folder = Path(folder)
    result = read_result(folder)
    config = read_config(folder / CONFIG)
    try:
        check_settings(config)
        problem = load_problem(config, device=device, progress=progress)
        known = {"split": (result.split.get("hash"), problem.split.hash)}
        if result.graph:
            known["graph"] = (result.graph, problem.graph)
        for what, (then, now) in known.items():
            if then != now:
                raise DataError(
                    f"the {what} of {folder} has hash {then}, but today's data give {now}: the dataset differs from "
                    "the one it was trained on."
                )
        with train.seeded(config.seed):
            model = problem.model(config)
        train.load_weights(model, folder / WEIGHTS, device=device)
        inputs = model.prepare(problem.x, problem.edges, pos=problem.pos)
        logits = train.predict(model, inputs, time=result.best_time)
    except ValueError as error:  # settings that cannot have been trained with, or weights that are not finite
        raise DataError(f"the run in {folder} cannot be repeated ({error}): train it again.") from error
    return SavedRun(result, problem, model, inputs, logits)


@checked
def evaluate_run(folder: AnyPath, *, device: DeviceName = "cpu") -> tuple[RunResult, float, float]:
    """Return the saved result of a run, and the validation and test metric of its weights as evaluated now."""
    run = load_run(folder, device=device)
    logits, y, split, task = run.logits, run.problem.dataset.y, run.problem.split, run.problem.task
    val = float(task.metric(logits[split.val], y[split.val]))
    return run.result, 100 * val, 100 * train.read_test(logits, y, split, task=task)


def similarity_edges(spec: StencilSpec, x: Tensor, edges: Edges) -> Edges:
    """Return the input graph altered by the similarity of the features; added edges take time and are cached."""
    prior = build_prior(spec)
    if prior is None or not isinstance(spec, InputEdgesSpec):
        return edges
    weighted = tf_idf(x if x.layout == torch.strided else x.to_dense())
    if spec.add.kind == "none":
        return prior(weighted, edges)
    return cached_stencil(prior, weighted, edges, by=f"2; {spec.reweight}; {spec.add}")
