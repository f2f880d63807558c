"""The commands of the command line."""

import os
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

import beltrami
from beltrami.cli import graph_options as own
from beltrami.cli.cost_commands import bench, plan
from beltrami.cli.ending import Commands, run_commands
from beltrami.cli.file_commands import denoise, encode, rewire
from beltrami.cli.folder_commands import convert, is_folder
from beltrami.cli.folder_train import Memory, refuse_for_folder, train_folder
from beltrami.cli.graph_commands import predict, train_auto, train_graph
from beltrami.cli.option import Address, Aids, Device, Settings, check_device, check_seed
from beltrami.cli.report_commands import compare, explain, report, watch
from beltrami.cli.row_commands import train_precomputed
from beltrami.cli.several_workers import Parts, SeveralWorkers, Timeout, WorkerCount
from beltrami.cli.study_tune import study, tune
from beltrami.cli.train_run import Every, Force, Json, Quiet, Resume, Running, check_recipe, train_recipe

app = typer.Typer(
    cls=Commands,
    help="Beltrami neural diffusion on graphs: a flow on a stencil by a scheme.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"beltrami {beltrami.__version__}")
        raise typer.Exit


Version = Annotated[bool, Option("--version", help="Print the version.", callback=_print_version, is_eager=True)]


@app.callback()
def options(version: Version = False) -> None:
    """Beltrami neural diffusion on graphs: a flow on a stencil by a scheme."""


@app.command()
def train(
    source: own.Source = None,
    nodes: own.Nodes = None,
    edges: own.EdgeTable = None,
    label: own.Label = None,
    id: own.Id = None,
    features: own.Features = None,
    weight: own.Weight = None,
    split_column: own.SplitColumn = None,
    task: own.TaskName = None,
    balanced: own.Balanced = False,
    check: own.Check = False,
    recipe: Annotated[
        str | None, Option(help="A recipe's name, or a file of `tune`; by default blend, for own graphs auto.")
    ] = None,
    budget: own.Budget = None,
    fast: own.Fast = False,
    average: own.Average = False,
    calibration: own.Calibration = None,
    split: Annotated[str | None, Option(help="Split protocol: planetoid, digl or shchur; else the recipe's.")] = None,
    split_seed: Annotated[
        int | None, Option(help="Which split of the protocol; the seed's own by default.", callback=check_seed)
    ] = None,
    seed: Annotated[
        int | None,
        Option(help="Seed of weights, dropout and split; 0, or a recipe file's, by default.", callback=check_seed),
    ] = None,
    settings: Settings = None,
    aids: Aids = None,
    log: Annotated[
        list[Path] | None,
        Option(help="Log of every epoch: JSON lines, `*.jsonl`, or a folder of TensorBoard events; may be repeated."),
    ] = None,
    out: Annotated[Path | None, Option(help="Folder for the result, the weights and the configuration.")] = None,
    resume: Resume = False,
    force: Force = False,
    checkpoint: Every = None,
    quiet: Quiet = False,
    json: Json = False,
    device: Device = "cpu",
    memory: Memory = None,
    compare: Annotated[
        int | None,
        Option(min=1, help="Print means over so many splits, beside those of scikit-learn's LabelSpreading."),
    ] = None,
    workers: WorkerCount = None,
    parts: Parts = None,
    timeout: Timeout = None,
    address: Address = None,
) -> None:
    """Train a model on a dataset, or on a graph of your own, and report its accuracy.

    Epoch and terminal time are chosen on the validation nodes; test labels are read once, at the end. The run
    writes `result.json`, `model.safetensors`, `config.json` and a log, `epochs.jsonl`, into the folder of `--out`, by
    default `runs/DATASET-RECIPE-SEED`, with a number if that is taken. A setting that the chosen kinds do not have is
    refused. A run that was stopped goes on with `--resume`, to the same bits.

    A graph of your own is a folder with tables of nodes and edges, or a file: csv, tsv, parquet, npz or graphml. Nodes
    without a label are those to predict. The best of several models by validation, within `--budget`, is saved in
    `runs/NAME`; `beltrami predict` writes its predictions, and `beltrami explain` says where one came from.

    Examples:
    - `beltrami train my/ --label class --check` prints what was understood; without `--check` it trains.
    - `beltrami train --nodes nodes.csv --edges edges.csv --label class --budget 5m`, with `--average` of all models
    - `beltrami train` trains on handwritten digits, with nothing to download.
    - `beltrami train cora --split planetoid --seed 3`
    - `beltrami train photo --recipe uniform --set scheme.time=2 --device cuda`
    - `beltrami train cora --set position.kind=deepwalk --set position.channels=64`
    - `beltrami train citeseer --recipe blend-knn`, or paper, paper-knn: the published settings
    - `beltrami train cora --aids none`, or `--recipe gcn --aids same`: without our training aids, or GCN with them
    - `beltrami train FOLDER --memory 8GiB --device cuda`: a folder of arrays, read in blocks within this memory
    - `beltrami train cora --recipe gcn`, or gat, gat-ppr, monet, sage-mean, sage-maxpool, cgnn, gde, gode, lanczosnet,
      adalanczosnet, grand
    - `beltrami train cora --recipe runs/tune-cora-blend/best.json`, or the `config.json` of a run on a dataset
    - `beltrami train my-graph/ --recipe precomputed`: a graph folder, which need not fit into memory; datasets too
    - `beltrami train pubmed --workers 4` trains on four processes, with the same numbers
    - `beltrami train pubmed --workers 4 --address auto`: on the machines of a Ray cluster (`beltrami[tune]`)
    - `beltrami train cora --recipe gat-flow`: a row of the paper's Table 1; `beltrami zoo` prints them
    """
    from beltrami.config import check_settings, load_recipe, override
    from beltrami.config.recipe.aids import read_aids
    from beltrami.config.recipe.precomputed import dataset_spec

    running = Running(out, check_device(device), resume, force, checkpoint, quiet, json)
    several = SeveralWorkers(workers, parts, timeout, address)
    named = (nodes, edges, label, id, features, weight, split_column, task)
    options = own.GraphOptions(*named, balanced, check, budget, fast, average, calibration)
    if check:
        own.refuse_for_check({**running.training_only, **several.given, "--log": log, "--compare": compare})
    if nodes is None and edges is None and is_folder(source):
        datasets_only = {"--split": split, "--split-seed": split_seed, "--aids": aids, "--compare": compare}
        refuse_for_folder(options, {**datasets_only, **several.given})
        train_folder(source, running, memory=memory, recipe=recipe, seed=seed, settings=settings, logs=log)
        return
    if memory is not None:
        raise ValueError("`--memory` is for a graph folder with a graph.json: name one, or leave the option out.")
    if own.is_own_graph(source, nodes, edges):
        datasets = {"--split": split, "--split-seed": split_seed, "--set": settings, "--aids": aids, "--log": log}
        single = {"--compare": compare, "--checkpoint": checkpoint, **several.given}
        own.refuse_for_own_graph(recipe, {**datasets, **single})
        train_graph(source, options, running, seed=seed or 0)
        return
    dataset, recipe = source or "digits", recipe or "blend"
    options.check_dataset(source, recipe)
    if recipe == own.AUTO:
        others = {"--set": settings, "--aids": aids, "--log": log, "--compare": compare, "--checkpoint": checkpoint}
        own.refuse_for_auto({**others, **several.given})
        train_auto(dataset, options, running, split=split, split_seed=split_seed, seed=seed or 0)
        return
    if recipe == own.PRECOMPUTED:
        own.refuse_for_rows({"--aids": aids, "--compare": compare, "--check": check, **several.given})
        spec = dataset_spec(dataset, protocol=split, split_seed=split_seed, seed=seed or 0)
        train_precomputed(spec, running, seed=seed or 0, settings=settings or [], logs=log or [])
        return
    given = None if aids is None else read_aids(aids)
    config = load_recipe(recipe, dataset, protocol=split, seed=seed, split_seed=split_seed, aids=given)
    config = override(config, settings or [])
    check_settings(config)
    if check:
        check_recipe(config, running)
    elif several.launches or several.is_asked:
        several.train(config, running, logs=log or [], compare=compare)
    else:
        train_recipe(config, running, logs=log or [], compare=compare)


@app.command()
def evaluate(
    folder: Annotated[Path, Argument(help="The folder of a run, as `train --out` left it.", metavar="DIR")],
    device: Device = "cpu",
) -> None:
    """Evaluate a trained model again and print its accuracy and the recorded one."""
    from beltrami.config.run_kind import run_kind
    from beltrami.report.progress import display
    from beltrami.report.terminal import print_evaluation
    from beltrami.rows.row_run import evaluate_rows
    from beltrami.run import CONFIG, evaluate_run
    from beltrami.run_streamed import evaluate_streamed

    evaluations = {"dataset": evaluate_run, "blocks": evaluate_streamed, "rows": evaluate_rows}
    with display("evaluating"):
        result, val, test = evaluations[run_kind(folder / CONFIG)](folder, device=check_device(device))
    print_evaluation(result, val_accuracy=val, test_accuracy=test)


@app.command()
def datasets() -> None:
    """List the datasets: their statistics and whether each is on this machine."""
    from beltrami.data import CATALOGUE, available
    from beltrami.report.terminal import print_datasets

    print_datasets(CATALOGUE, {name: available(name) for name in CATALOGUE})


@app.command()
def zoo() -> None:
    """Print the paper's Table 1 from the code: each network as a flow on a graph by a scheme, and how to train it.

    `beltrami train cora --recipe gat-flow` trains the second row, and so on by the names of the last column.
    """
    from beltrami.model.zoo import TABLE
    from beltrami.report.terminal import print_zoo

    print_zoo(TABLE)


for command in (predict, explain, report, watch, compare, convert, encode, rewire, plan, bench, study, denoise, tune):
    app.command()(command)


def main() -> None:
    """Run the command line; an error is one line, not a traceback."""
    # Idle threads of OpenMP wait for work in a loop, and keep a core from ours: a shorter wait, read when torch loads.
    os.environ.setdefault("GOMP_SPINCOUNT", "3000")
    run_commands(app)
