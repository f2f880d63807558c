"""The verbs, and the way in and out of them."""

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from beltrami.cli.bench import bench
from beltrami.cli.denoise import denoise
from beltrami.cli.encode_rewire import encode, rewire
from beltrami.cli.option import Device, check_device, check_folder
from beltrami.cli.study import study
from beltrami.cli.tune import tune
from beltrami.cli.zoo import zoo
from beltrami.errors import DataError, SolverError

app = typer.Typer(
    help="Beltrami neural diffusion on graphs: a flow on a stencil by a scheme.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


@app.command()
def train(
    dataset: Annotated[
        str, typer.Argument(help="A dataset's name; `beltrami datasets` lists them.", metavar="[DATASET]")
    ] = "digits",
    recipe: Annotated[
        str,
        typer.Option(
            help="Which settings to start from: blend, blend-knn, uniform, polyakov, a competitor's, or `tune`'s file.",
            metavar="NAME",
        ),
    ] = "blend",
    split: Annotated[
        str | None,
        typer.Option(
            help="Split protocol: planetoid, digl or shchur; the recipe's own by default.", metavar="PROTOCOL"
        ),
    ] = None,
    split_seed: Annotated[
        int | None, typer.Option(help="Which split of the protocol; the seed's own by default.", metavar="N")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the weights, of dropout and of the split.", metavar="N")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Change a setting, such as `--set scheme.time=4`; may be given again.", metavar="NAME=VALUE"
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for result.json, the weights and the configuration.", metavar="DIR")
    ] = None,
    device: Device = "cpu",
    compare: Annotated[
        bool, typer.Option("--compare", help="Also run scikit-learn's LabelSpreading on the same split.")
    ] = False,
) -> None:
    """Train a model on a dataset and report its accuracy.

    Epoch and terminal time are chosen on the validation nodes; test labels are read once, at the end. The run
    leaves `result.json`, `model.safetensors` and `config.json` in the folder of `--out`, by default
    `runs/DATASET-RECIPE-SEED`.

    Examples:

    - `beltrami train` trains on handwritten digits, with nothing to download.

    - `beltrami train cora --split planetoid --seed 3`

    - `beltrami train photo --recipe uniform --set scheme.time=2 --device cuda`

    - `beltrami train citeseer --recipe blend-knn`

    - `beltrami train cora --recipe gcn`, or gat, gat-ppr, monet, sage-mean, sage-maxpool, cgnn, gde, gode, lanczosnet,
      adalanczosnet, grand

    - `beltrami train cora --recipe runs/tune-cora-blend/best.json`, or the `config.json` of any run
    - `beltrami train cora --recipe gat-flow`: a row of the paper's Table 1; `beltrami zoo` prints them
    """
    from beltrami.config import check_settings, load_recipe, override, resolve_files
    from beltrami.config.build import build_training
    from beltrami.report.progress import display, training
    from beltrami.report.terminal import print_run
    from beltrami.run import load_problem, run_config, save_run

    where = check_device(device)
    config = override(load_recipe(recipe, dataset, protocol=split, seed=seed, split_seed=split_seed), settings or [])
    check_settings(config)
    config = resolve_files(config)
    folder = out or Path("runs") / f"{config.dataset}-{config.recipe}-{config.seed}"
    check_folder(folder)
    with display() as shown:
        problem = load_problem(config, device=where, progress=shown.update)
    with training(build_training(config.train).most_epochs, title=f"{config.dataset} / {config.recipe}") as on_epoch:
        result, model = run_config(config, device=where, problem=problem, on_epoch=on_epoch)
    save_run(folder, config, result, model)
    rival = None
    if compare:
        from beltrami.lab.label_spreading import spread_labels

        rival = spread_labels(problem.dataset, problem.split)
    print_run(result, folder=folder, label_spreading=rival)


@app.command()
def evaluate(
    folder: Annotated[Path, typer.Argument(help="The folder of a run, as `train --out` left it.", metavar="DIR")],
    device: Device = "cpu",
) -> None:
    """Read a trained model back and print its accuracy beside the one that was recorded."""
    from beltrami.report.terminal import print_evaluation
    from beltrami.run import evaluate_run

    result, val, test = evaluate_run(folder, device=check_device(device))
    print_evaluation(result, val_accuracy=val, test_accuracy=test)


@app.command()
def datasets() -> None:
    """List the datasets: their statistics and whether each is at hand."""
    from beltrami.data import CATALOGUE, available
    from beltrami.report.terminal import print_datasets

    print_datasets(CATALOGUE, {name: available(name) for name in CATALOGUE})


app.command()(encode)
app.command()(rewire)
app.command()(bench)
app.command()(study)
app.command()(denoise)
app.command()(tune)
app.command()(zoo)


def main() -> None:
    """Run the command line; an error is one line, never a traceback.

    Exit codes: 0 done, 1 failure, 2 bad usage, 130 interrupted, as shells have it.
    """
    if os.environ.get("BELTRAMI_TRACEBACK"):
        app(prog_name="beltrami")
    try:
        app(prog_name="beltrami")
    except ValueError as error:
        _fail(str(error), code=2)
    except KeyboardInterrupt:
        _fail("interrupted.", code=130)
    except (DataError, SolverError, OSError) as error:
        _fail(str(error), code=1)
    except Exception as error:
        first = str(error).strip().split("\n")[0]
        _fail(f"{type(error).__name__}: {first} (BELTRAMI_TRACEBACK=1 shows where)", code=1)


def _fail(message: str, *, code: int) -> NoReturn:
    typer.echo(f"beltrami: {' '.join(message.split())}", err=True)
    sys.exit(code)
