"""run: one configuration, from its dataset to its result; and back from a result's folder."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from beltrami.config.build import build_classifier, build_encoding, build_training, check_settings
from beltrami.config.build_stencil import build_prior
from beltrami.config.files import resolve_files
from beltrami.config.parse import read_config
from beltrami.config.search_count import search_count
from beltrami.config.spec import PositionConfig, RunConfig, StencilConfig
from beltrami.data import Dataset, Progress, Split, load, make_split
from beltrami.data.cache import cached_positions, cached_stencil
from beltrami.data.store import BALL, FLAT, load_positions, load_stencil
from beltrami.errors import DataError, UnknownName
from beltrami.geometry import PoincareBall
from beltrami.graph import Edges, SparseMatrix
from beltrami.model import Classifier
from beltrami.position import Encoding, Hyperbolic
from beltrami.stencil import tf_idf
from beltrami.train import (
    Epoch,
    Fit,
    RunResult,
    accuracy,
    count_parameters,
    fit,
    load_weights,
    predict,
    read_test,
    save_weights,
    seeded,
    versions,
    write_atomically,
)

SPARSE_BELOW = 0.1  # density under which inputs are multiplied by their non-zeros alone
COMPONENTS = ("largest", "all")
FEATURES = ("raw", "rows")


@dataclass(frozen=True)
class Problem:
    """A dataset made ready: its split, its inputs sparse where that pays, its positions, and the graph for the model,
    which is its own or one from a file."""

    dataset: Dataset
    split: Split
    x: Tensor | SparseMatrix
    edges: Edges
    pos: Tensor | SparseMatrix | None

    def model(self, config: RunConfig) -> Classifier:
        """A fresh model for this problem, from the random state as it is."""
        positions = 0 if self.pos is None else self.pos.shape[1]
        return build_classifier(
            config, features=self.x.shape[1], positions=positions, num_classes=self.dataset.num_classes
        ).to(self.edges.device)


def load_problem(config: RunConfig, *, device: str = "cpu", progress: Progress | None = None) -> Problem:
    """Load, cut down to the component, split and encode what a configuration names."""
    if config.data.features not in FEATURES:
        raise UnknownName("data.features", config.data.features, FEATURES)
    check_settings(config)
    config = resolve_files(config)
    dataset = read_dataset(config.dataset, component=config.data.component, progress=progress)
    split = make_split(dataset, protocol=config.data.protocol, seed=config.data.split_seed)
    edges = Edges.build(dataset.edge_index, num_nodes=dataset.num_nodes)
    pos = _positions(config.position, edges)
    if config.stencil.file is not None:
        edges = load_stencil(Path(config.stencil.file), edges)
    x = even_rows(dataset.x) if config.data.features == "rows" else dataset.x
    dataset, edges = dataset.to(device), edges.to(device)
    return Problem(
        dataset=dataset,
        split=split.to(device),
        x=sparse_where_it_pays(x).to(device),
        edges=_by_features(config.stencil, dataset.x, edges),
        pos=None if pos is None else sparse_where_it_pays(pos).to(device),
    )


def on_split(problem: Problem, config: RunConfig) -> Problem:
    """The problem on the split of a configuration."""
    data = config.data
    split = make_split(problem.dataset.to("cpu"), protocol=data.protocol, seed=data.split_seed)
    return replace(problem, split=split.to(problem.dataset.y.device))


def read_dataset(name: str, *, component: str, progress: Progress | None = None) -> Dataset:
    """A dataset, or its largest component."""
    if component not in COMPONENTS:
        raise UnknownName("data.component", component, COMPONENTS)
    dataset = load(name, progress=progress)
    return dataset.largest_component() if component == "largest" else dataset


def in_chart(positions: Tensor, space: str) -> Tensor:
    """Positions as a model takes them: points of the ball by their logarithms at the origin."""
    return PoincareBall().log_origin(positions) if space == BALL else positions


def run_config(
    config: RunConfig,
    *,
    device: str = "cpu",
    problem: Problem | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> tuple[RunResult, Classifier]:
    """Train one configuration and judge it: every choice by validation, the test labels read once."""
    problem = load_problem(config, device=device) if problem is None else problem
    with seeded(config.seed):
        model = problem.model(config)
        inputs = model.prepare(problem.x, problem.edges, problem.pos)
        callbacks = () if on_epoch is None else (on_epoch,)
        found = fit(model, inputs, problem.dataset.y, problem.split, build_training(config.train), callbacks=callbacks)
    return evaluate_fit(config, problem, model, found), model


def evaluate_fit(config: RunConfig, problem: Problem, model: Classifier, found: Fit) -> RunResult:
    """The result of a trained model: here the test labels are read."""
    dataset, split = problem.dataset, problem.split
    inputs = model.prepare(problem.x, problem.edges, problem.pos)
    logits = predict(model, inputs, time=found.best.time)
    return RunResult(
        dataset=config.dataset,
        recipe=config.recipe,
        seed=config.seed,
        split={"protocol": split.protocol, "seed": split.seed, "hash": split.hash},
        val_accuracy=100 * accuracy(logits[split.val], dataset.y[split.val]),
        test_accuracy=100 * read_test(logits, dataset.y, split),
        best_time=found.best.time,
        best_epoch=found.best_epoch,
        epochs=found.epochs,
        train_seconds=found.seconds,
        evaluations={"forward": found.stats.evaluations, "backward": found.stats.backward_evaluations},
        parameters=count_parameters(model.parameters()),
        attention_spread=model.attention_spread(inputs),
        device=_device_name(dataset.y.device),
        versions=versions(),
        tried=search_count(config),
    )


def save_run(folder: Path, config: RunConfig, result: RunResult, model: Classifier) -> None:
    """Leave the exact configuration, the weights and the result in ``folder``; the result comes last."""
    write_atomically(folder / "config.json", config.to_json().encode())
    save_weights(model, folder / "model.safetensors")
    write_atomically(folder / "result.json", result.to_json().encode())


def evaluate_run(folder: Path, *, device: str = "cpu") -> tuple[RunResult, float, float]:
    """Read a run back and judge its weights anew: the saved result, and the validation and test accuracy of today."""
    result = RunResult.read(folder / "result.json")
    config = read_config(folder / "config.json")
    try:
        val_accuracy, test_accuracy = _judge_again(folder, config, result, device=device)
    except ValueError as error:  # a setting nobody could have trained with, or weights that are no numbers
        raise DataError(f"the run in {folder} cannot be repeated ({error}): train it again.") from error
    return result, val_accuracy, test_accuracy


def _judge_again(folder: Path, config: RunConfig, result: RunResult, *, device: str) -> tuple[float, float]:
    problem = load_problem(config, device=device)
    if problem.split.hash != result.split.get("hash"):
        raise DataError(
            f"the split of {folder} has hash {result.split.get('hash')}, but today's data give {problem.split.hash}: "
            "the dataset differs from the one it was trained on."
        )
    with seeded(config.seed):
        model = problem.model(config)
    load_weights(model, folder / "model.safetensors", device=device)
    inputs = model.prepare(problem.x, problem.edges, problem.pos)
    logits, y, split = predict(model, inputs, time=result.best_time), problem.dataset.y, problem.split
    return 100 * accuracy(logits[split.val], y[split.val]), 100 * read_test(logits, y, split)


def _positions(config: PositionConfig, edges: Edges) -> Tensor | None:
    if config.file is not None:
        positions, made = load_positions(Path(config.file), edges)
        return in_chart(positions, made.space)
    encoding = build_encoding(config)
    if encoding is None:
        return None
    return in_chart(cached_positions(encoding, edges, seed=config.seed), space_of(encoding))


def _by_features(config: StencilConfig, x: Tensor, edges: Edges) -> Edges:
    """The input graph and what the input features make of it; to find nearest nodes takes its time, so that is kept."""
    prior = build_prior(config)
    if prior is None or not config.near:
        return edges if prior is None else prior(tf_idf(x), edges)
    by = f"1; alike {config.alike}; near {config.near} {config.near_weight}"
    return cached_stencil(prior, tf_idf(x), edges, by=by)


def space_of(encoding: Encoding) -> str:
    """Where an encoding puts the nodes."""
    return BALL if isinstance(encoding, Hyperbolic) else FLAT


def even_rows(x: Tensor) -> Tensor:
    """Rows scaled to one sum of absolute values, their mean: long texts count no more than short ones."""
    sums = x.abs().sum(1, keepdim=True)
    return torch.where(sums > 0, x * (sums.mean() / sums), x)


def sparse_where_it_pays(x: Tensor) -> Tensor | SparseMatrix:
    """Inputs by their non-zeros where these are few, else dense."""
    entries = x.shape[0] * x.shape[1]
    nonzero = int(torch.count_nonzero(x)) if x.layout == torch.strided else x._nnz()
    if nonzero < SPARSE_BELOW * entries:
        return SparseMatrix.of(x)
    return x if x.layout == torch.strided else x.to_dense()


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
