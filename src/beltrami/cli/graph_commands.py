"""The commands for a user's own graph: the part of ``train`` that takes one, and ``predict``."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from beltrami.cli.graph_options import AUTO, GraphOptions, run_name
from beltrami.cli.option import Device, check_device, check_file
from beltrami.cli.resumable import resume_command
from beltrami.cli.row_commands import write_saved_predictions
from beltrami.cli.train_run import Running
from beltrami.errors import Interrupted

if TYPE_CHECKING:
    from beltrami.data.graph_table import GraphTable
    from beltrami.predict.predictor import Predictor

COVERAGE, COVERAGE_LABELS = 0.9, 9  # a coverage, and the calibration labels that it needs
PREDICTIONS = "predictions.csv"
NAMED = "named"  # the columns that the user named, in the record of a predictor

Run = Annotated[Path, Argument(help="The folder that `beltrami train` wrote.", metavar="RUN")]


def train_graph(source: str | None, options: GraphOptions, running: Running, *, seed: int) -> None:
    """Train on a graph of the user's own, or print what was understood of it."""
    from beltrami.auto.fit_graph import check_targets, fit_graph
    from beltrami.data.labelled_split import split_labels
    from beltrami.data.target import read_targets
    from beltrami.report.graph_report import TrialTable, print_start

    fitting = options.fitting(seed)
    table = _read(source, options)
    if options.check:
        _check(table, options, fitting)
        return
    targets = read_targets(table.labels, kind=options.task)
    check_targets(targets, balanced=options.balanced, average=options.average)
    split_labels(targets.y, column=table.split, **_drawing(fitting))  # refuses before anything is made

    def train(checkpoint: Path) -> "Predictor":
        print_start(table, targets)
        with TrialTable(targets.kind, balanced=options.balanced, fast=options.fast, quiet=running.quiet) as trials:
            kept: dict[str, Any] = {"report": trials.add, "checkpoint": checkpoint, "device": running.device}
            predictor = fit_graph(table, task=options.task, balanced=options.balanced, **kept, **fitting)
        named = {"id": options.id, "weight": options.weight}
        return replace(predictor, record={**predictor.record, NAMED: named, "balanced": options.balanced})

    _train_predictor(train, running, run_name(source, options))


def train_auto(
    name: str, options: GraphOptions, running: Running, *, split: str | None, split_seed: int | None, seed: int
) -> None:
    """Train the recipe auto on a named dataset."""
    from beltrami.auto.fit_graph import fit_dataset
    from beltrami.config import load_recipe
    from beltrami.data import make_split
    from beltrami.precompute import read_dataset
    from beltrami.report.graph_report import TrialTable
    from beltrami.report.progress import display

    fitting = options.fitting(seed)
    config = load_recipe("blend", name, protocol=split, seed=seed, split_seed=split_seed)
    with display(quiet=running.quiet) as shown:
        dataset = read_dataset(name, component=config.data.component, progress=shown.update)
    found = make_split(dataset, protocol=config.data.protocol, seed=config.data.split_seed)

    def train(checkpoint: Path) -> "Predictor":
        with TrialTable("classes", fast=options.fast, quiet=running.quiet) as trials:
            kept: dict[str, Any] = {"report": trials.add, "checkpoint": checkpoint, "device": running.device}
            return fit_dataset(dataset, found, **kept, **fitting)

    _train_predictor(train, running, f"{name}-{AUTO}-{seed}")


def _train_predictor(train: Callable[[Path], "Predictor"], running: Running, name: str) -> None:
    """Train a predictor in its folder, where trained members are kept in a checkpoint, save and print it."""
    from beltrami.report.graph_report import print_fit
    from beltrami.run_folder import CHECKPOINT, is_finished, run_folder

    resumes = (lambda folder: not is_finished(folder)) if running.resume else None
    with run_folder(running.out, name, force=running.force, resumes=resumes) as folder, running.printing():
        if running.resume and is_finished(folder):
            raise ValueError(f"the run in {folder} is finished: use it with `beltrami predict`, or add `--force`.")
        try:
            predictor = train(folder / CHECKPOINT)
        except KeyboardInterrupt as error:
            kept = "the members that are trained are kept" if (folder / CHECKPOINT).exists() else "nothing is trained"
            text = f"interrupted; {kept}. Go on with `{resume_command(folder)}`."
            raise Interrupted(text, code=getattr(error, "code", 130)) from None
        _save(predictor, folder, running.device)
        (folder / CHECKPOINT).unlink(missing_ok=True)
        print_fit(predictor, folder=folder)
    if running.json:
        typer.echo(json.dumps(predictor.record, indent=2))


def predict(
    folder: Run,
    out: Annotated[Path, Option(help="The file to write: .csv, .tsv or .parquet.")],
    source: Annotated[
        str | None, Argument(help="Another graph: a folder or file; else that of the training.", metavar="SOURCE")
    ] = None,
    nodes: Annotated[Path | None, Option(help="Another graph: its table of nodes.")] = None,
    edges: Annotated[Path | None, Option("--edges", help="Another graph: its table of edges.")] = None,
    coverage: Annotated[float | None, Option(help="Share of sets that hold the true class; 0.9 by default.")] = None,
    no_sets: Annotated[bool, Option("--no-sets", help="Write no prediction sets or intervals.")] = False,
    smoothing: Annotated[float, Option(help="Share of the neighbours in the scores of the sets, from 0 to 1.")] = 0.0,
    from_features: Annotated[
        bool, Option("--from-features", help="Predict by features where no label is in the connected component.")
    ] = False,
    device: Device = "cpu",
) -> None:
    """Write the predictions of a trained model: the ids, classes, probabilities and prediction sets of all nodes.

    Without another graph, the predictions are those at the nodes of the training graph. Another graph needs the same
    columns; its predictions have no sets, as nothing guarantees their coverage. A JSON file beside the table says what
    the sets promise. Of a run on a graph folder, the numbers, classes and probabilities of all nodes are written.

    Examples:
    - `beltrami predict runs/my --out predictions.csv`
    - `beltrami predict runs/my --out predictions.parquet --coverage 0.95`
    - `beltrami predict runs/my --nodes new-nodes.csv --edges new-edges.csv --out new.csv`
    """
    from beltrami.config.run_kind import run_kind
    from beltrami.data.graph_reader import read_graph
    from beltrami.predict.predictor import Predictor
    from beltrami.predict.table_file import check_table_path
    from beltrami.report.graph_report import print_predictions
    from beltrami.report.progress import display
    from beltrami.run import CONFIG

    if run_kind(folder / CONFIG) != "dataset":
        of_predictors = {"SOURCE": source, "--nodes": nodes, "--edges": edges, "--coverage": coverage}
        others = {"--no-sets": no_sets, "--smoothing": smoothing or None, "--from-features": from_features}
        write_saved_predictions(folder, out, {**of_predictors, **others})
        return
    where = check_device(device)
    _check_coverage(coverage, no_sets=no_sets)
    if not 0 <= smoothing <= 1:
        raise ValueError(f"`--smoothing` takes a share from 0 to 1; got {smoothing:g}.")
    check_table_path(out)
    given = [Path(part) for part in (source, nodes, edges) if part is not None]
    if source is not None and len(given) > 1:
        raise ValueError(f"{source} is given beside `--nodes` or `--edges`: give one or the other.")
    if any(out.resolve() == part.resolve() for part in given):
        raise ValueError(f"`--out {out}` would replace a file of the graph: choose another name.")
    predictor = Predictor.load(folder)
    table = None
    if given:
        named = predictor.record.get(NAMED, {})
        joined = edges is not None or (source is not None and Path(source).expanduser().is_dir())
        columns = {
            "id": named.get("id") if nodes is not None or source is not None else None,
            "weight": named.get("weight") if joined else None,
        }
        with display("reading"):
            table = read_graph(source, nodes=nodes, edges=edges, label=(), **columns)
    elif coverage is not None and predictor.calibration.conformal is None:
        raise ValueError(
            f"`--coverage {coverage:g}` needs labels that were set aside for calibration, and {folder} has none: train "
            "with more labels, or leave it out."
        )
    check_file(out)
    asked = None if no_sets else COVERAGE if coverage is None else coverage
    with display("predicting"):
        found = predictor.predict(table, coverage=asked, smoothing=smoothing, from_features=from_features, device=where)
        found.write(out)
    print_predictions(found, path=out)


def _save(predictor: "Predictor", folder: Path, device: str) -> None:
    """Write the predictions at the training graph and then the predictor, whose last file says that all is there."""
    conformal = predictor.calibration.conformal
    enough = conformal is None or len(conformal.scores) >= COVERAGE_LABELS
    predictor.predict(coverage=COVERAGE if enough else None, device=device).write(folder / PREDICTIONS)
    predictor.save(folder)


def _read(source: str | None, options: GraphOptions) -> "GraphTable":
    from beltrami.data.graph_reader import read_graph
    from beltrami.report.progress import display

    with display("reading"):
        return read_graph(
            source,
            nodes=options.nodes,
            edges=options.edges,
            label=options.label,
            id=options.id,
            features=options.features,
            weight=options.weight,
            split=options.split_column,
        )


def _check(table: "GraphTable", options: GraphOptions, fitting: Mapping[str, Any]) -> None:
    """Print what was understood of a graph, and refuse labels that training would refuse."""
    from beltrami.auto.estimate import estimate_cost
    from beltrami.auto.fit_graph import check_targets
    from beltrami.data.graph_summary import summarise
    from beltrami.report.graph_check import print_check
    from beltrami.report.progress import display

    with display("summarising the graph"):
        summary = summarise(table, task=options.task, **_drawing(fitting))
    if summary.targets is not None:
        check_targets(summary.targets, balanced=options.balanced, average=options.average)
    limits = {name: value for name, value in fitting.items() if name in ("budget", "fast")}
    print_check(summary, estimate_cost(summary.graph, summary.splits, **limits))


def _drawing(fitting: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options by which the split is drawn."""
    return {name: value for name, value in fitting.items() if name in ("calibration", "seed")}


def _check_coverage(coverage: float | None, *, no_sets: bool) -> None:
    if coverage is not None and no_sets:
        raise ValueError("`--coverage` is for prediction sets, and `--no-sets` leaves them out: give one of them.")
    if coverage is not None and not 0 < coverage < 1:
        raise ValueError(f"`--coverage` must lie between 0 and 1, both excluded; got {coverage:g}.")
