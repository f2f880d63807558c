"""The verb that searches settings."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from beltrami.cli.option import Device, check_folder, needs_ray, share_of

if TYPE_CHECKING:
    from beltrami.lab.resources import Resources
    from beltrami.lab.study import RecordLog
    from beltrami.lab.tune import Search
    from beltrami.lab.tune.ray_backend import RayBackend


def tune(
    dataset: Annotated[
        str, typer.Argument(help="A dataset's name; `beltrami datasets` lists them.", metavar="DATASET")
    ],
    trials: Annotated[int, typer.Option(help="Configurations to try, the recipe's own among them.", metavar="N")],
    recipe: Annotated[str, typer.Option(help="The recipe to begin with, or a recipe file.", metavar="NAME")] = "blend",
    protocol: Annotated[
        str | None, typer.Option(help="Split protocol; the recipe's own by default.", metavar="PROTOCOL")
    ] = None,
    splits: Annotated[
        int, typer.Option(help="Splits of a trial; initial weights where the protocol has one split.", metavar="K")
    ] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the random configurations.", metavar="N")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Hold a setting in all trials, such as `train.epochs=50`.", metavar="NAME=VALUE"),
    ] = None,
    device: Device = "cpu",
    gpus_per_trial: Annotated[
        float | None, typer.Option(help="Share of a GPU for a trial; 1 by default with `--device cuda`.", metavar="F")
    ] = None,
    cpus_per_trial: Annotated[float, typer.Option(help="Cores of a trial.", metavar="C")] = 1.0,
    address: Annotated[
        str, typer.Option(help="An existing Ray cluster, such as auto; `local` is this machine.", metavar="ADDR")
    ] = "local",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a results file: trials that are over are not done again.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Folder of trials.jsonl and best.json.", metavar="DIR")] = None,
) -> None:
    """Search the settings of a recipe by validation accuracy, at random and with hyperband's early stopping.

    As in the paper: random configurations by Ray Tune, with a grace period and a half-life of ten epochs. No test label
    is read. Every trial leaves one line in `trials.jsonl` as soon as it is over, so that a search that was stopped, in
    whatever way, goes on with `--resume`; a trial that fails leaves its error, and is tried again then. The best
    configuration is `best.json`, a recipe file that also says how many were tried.

    Needs Ray: `pip install 'beltrami[tune]'`. By default the folder of `--out` is `runs/tune-DATASET-RECIPE`.

    Examples:

    - `beltrami tune cora --trials 100`

    - `beltrami tune photo --trials 1000 --device cuda --gpus-per-trial 0.25`

    - `beltrami train cora --recipe runs/tune-cora-blend/best.json`
    """
    from beltrami.lab.study import RecordLog
    from beltrami.lab.tune import search_for

    if trials < 1:
        raise ValueError(f"`--trials` needs at least 1; got {trials}.")
    search = search_for(dataset, recipe, protocol=protocol, splits=splits, settings=settings or [], seed=seed)
    folder = out or Path("runs") / f"tune-{dataset}-{search.base.recipe}"
    share = share_of("trial", device=device, cpus=cpus_per_trial, gpus=gpus_per_trial, address=address)
    engine = _engine(share, address)
    check_folder(folder)
    with RecordLog(folder / "trials.jsonl", resume=resume) as ledger:
        todo = search.pending(trials, ledger.lines)
        if todo:
            _carry_out(search, todo, ledger, engine)
        _conclude(search, ledger, folder / "best.json")


def _engine(share: "Resources", address: str) -> "RayBackend":
    """Ray Tune, where it is installed."""
    try:
        from beltrami.lab.ray_cluster import Cluster
        from beltrami.lab.tune.ray_backend import RayBackend
    except ImportError as error:
        raise needs_ray("beltrami tune", error) from None
    return RayBackend(Cluster(share, address=address))


def _carry_out(search: "Search", todo: list[int], ledger: "RecordLog", engine: "RayBackend") -> None:
    """Do what is not done; one who interrupts is told how to go on."""
    from beltrami.lab.tune import Scheduler
    from beltrami.report.terminal import downloading
    from beltrami.report.tune import searching
    from beltrami.run import load_problem

    with downloading() as progress:
        load_problem(search.base, progress=progress)  # what is not at hand is missed now, and positions are found once
    try:
        with engine.cluster, searching(len(todo), title=f"{search.base.dataset} / {search.base.recipe}") as watch:
            engine.run(todo, Scheduler(search, ledger, watch))
    except KeyboardInterrupt:
        command = shlex.join(["beltrami", *sys.argv[1:], *([] if "--resume" in sys.argv else ["--resume"])])
        over = len(ledger.done())
        typer.echo(f"beltrami: interrupted with {over} trials in {ledger.path}: go on with `{command}`.", err=True)
        raise typer.Exit(130) from None


def _conclude(search: "Search", ledger: "RecordLog", path: Path) -> None:
    from beltrami.errors import DataError
    from beltrami.report.tune import found
    from beltrami.train import write_atomically

    best = search.best(ledger.lines)
    if best is None:
        last = ledger.lines[-1].error
        raise DataError(f"none of the {len(ledger.runs())} trials has a result; the last failed: {last}")
    write_atomically(path, best.to_json().encode())
    found(search, ledger.lines, best, path=path)
