"""Run the recipe precomputed: diffuse features once, train on rows, predict all nodes in blocks, save and load."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from beltrami import train
from beltrami.arguments import AnyPath, DeviceName, checked
from beltrami.config.build_rows import build_row_network, build_row_training
from beltrami.config.parser import read
from beltrami.config.recipe.precomputed import TRIED
from beltrami.config.spec_rows import RowConfig
from beltrami.model.row_network import RowNetwork
from beltrami.node_predictions import PREDICTIONS, PROBABILITY
from beltrami.result import Accuracies, RunResult, result_of_fit
from beltrami.rows.row_problem import RowProblem, load_row_problem
from beltrami.run import CONFIG, WEIGHTS, read_result, save_run
from beltrami.run_folder import begin_to_save
from beltrami.scale.diffused_rows import DiffusedRows, diffuse_rows
from beltrami.train.callback import AnyCallback
from beltrami.train.row_program import fit_rows, outputs_at


@checked
def run_rows(
    config: RowConfig,
    folder: AnyPath,
    *,
    problem: RowProblem | None = None,
    rows: DiffusedRows | None = None,
    device: DeviceName = "cpu",
    callbacks: Sequence[AnyCallback] = (),
    checkpoints: train.Checkpoints | None = None,
) -> RunResult:
    """Train a configuration and write its files to ``folder``: the settings, the weights, the predicted class of every
    node and its probability, and last the result. The classes of test nodes are read once, at the end.

    ``problem`` and ``rows``: the graph and the diffused features of the configuration, if they are loaded already.
    """
    folder, problem = Path(folder), load_row_problem(config.data) if problem is None else problem
    first, second, classes = problem.labelled()
    rows = diffuse_rows(problem.graph, times=config.times, rtol=config.rtol, device=device) if rows is None else rows
    with train.seeded(config.seed):
        model = _network(config, rows, classes, device)
        found = fit_rows(
            model,
            rows,
            first,
            second,
            build_row_training(config.train),
            batch=config.train.batch,
            seed=config.seed,
            callbacks=callbacks,
            checkpoints=checkpoints,
        )
    folder.mkdir(parents=True, exist_ok=True)
    begin_to_save(folder)
    accuracies = problem.known(classes).write(folder, outputs_at(model, rows))
    result = _result(config, problem, model, rows, found, accuracies)
    return save_run(folder, config, result, model, files=(PREDICTIONS, PROBABILITY))


def read_row_config(path: Path) -> RowConfig:
    """Return the configuration of a run on rows in a file."""
    return read(RowConfig, path, what="configuration")


@checked
def evaluate_rows(folder: AnyPath, *, device: DeviceName = "cpu") -> tuple[RunResult, float, float]:
    """Return the saved result of a run on rows, and the validation and test accuracy of its weights as of now."""
    folder = Path(folder)
    result = read_result(folder)
    config = read_row_config(folder / CONFIG)
    problem = load_row_problem(config.data)
    rows = diffuse_rows(problem.graph, times=config.times, rtol=config.rtol, device=device)
    model = _network(config, rows, len(result.per_class_accuracy), device)
    train.load_weights(model, folder / WEIGHTS, device=device)
    accuracies = problem.known(model.num_classes).accuracies_of(outputs_at(model, rows))
    return result, accuracies.val, accuracies.test


def _network(config: RowConfig, rows: DiffusedRows, classes: int, device: str) -> RowNetwork:
    mean, scale = rows.mean, rows.scale
    return build_row_network(config, features=rows.num_features, num_classes=classes, mean=mean, scale=scale).to(device)


def _result(
    config: RowConfig,
    problem: RowProblem,
    model: RowNetwork,
    rows: DiffusedRows,
    found: train.Fit,
    accuracies: Accuracies,
) -> RunResult:
    result = result_of_fit(
        config, model, found, accuracies, dataset=problem.name, split=problem.split, device=model.mixture.device
    )
    return replace(
        result,
        tried=TRIED.get(problem.name) if config.data.kind == "dataset" else None,
        diffused={
            "times": list(rows.times),
            "shares": model.shares.detach().tolist(),
            "error_bound": rows.bound,
        },
    )
