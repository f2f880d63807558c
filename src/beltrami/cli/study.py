"""The verb that measures the paper's tables again."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from beltrami.cli.option import Device, check_device, check_folder, needs_ray, share_of

if TYPE_CHECKING:
    from beltrami.lab.study import Executor, PlannedRun, RecordLog
    from beltrami.lab.study.work import Work

NAMES = "planetoid, random, attention, positions, steps, solvers, runtime, rewiring, parameters or time"


def study(
    name: Annotated[
        str | None, typer.Argument(help=f"Which study: {NAMES}. Without a name, they are listed.", metavar="NAME")
    ] = None,
    datasets: Annotated[
        list[str] | None,
        typer.Option(help="Datasets, with commas between them; the study's own by default.", metavar="NAMES"),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            help="Rows of the table, or recipe files, with commas; all that are known by default.", metavar="NAMES"
        ),
    ] = None,
    splits: Annotated[int | None, typer.Option(help="Random splits of each dataset.", metavar="N")] = None,
    inits: Annotated[int | None, typer.Option(help="Runs from other seeds on each split.", metavar="N")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a setting of every row, such as `train.epochs=20`.", metavar="NAME=VALUE"),
    ] = None,
    device: Device = "cpu",
    together: Annotated[
        int | None,
        typer.Option(help="Runs trained as one program; by default 25 on a GPU and 1 on the CPU.", metavar="N"),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            help="Spread batches over an existing Ray cluster, such as auto; `local` is a Ray on this machine.",
            metavar="ADDR",
        ),
    ] = None,
    cpus_per_batch: Annotated[
        float | None, typer.Option(help="Cores of a batch, with Ray; 1 by default.", metavar="C")
    ] = None,
    gpus_per_batch: Annotated[
        float | None,
        typer.Option(help="Share of a GPU for a batch, with Ray; 1 by default with `--device cuda`.", metavar="F"),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a results file: what is done is not done again.")
    ] = False,
    show: Annotated[bool, typer.Option("--show", help="Print the tables of a results file and run nothing.")] = False,
    out: Annotated[Path, typer.Option(help="Folder of the results file, NAME.jsonl.", metavar="DIR")] = Path(
        "results/study"
    ),
) -> None:
    """Measure a table or figure of the paper again, with intervals and the paper's figures beside ours.

    Every run leaves one line in the results file as soon as it is over, so that a study that was stopped, in whatever
    way, goes on with `--resume`. A run that fails leaves its error, and is tried again then. A run that another study
    in the folder has made already is copied from there.

    - `planetoid`: Table 2. `random`: Table 3. `parameters`: how many there are. `runtime`: the two tables of times.

    - `attention`: the four diffusivities, frozen and live, beside uniform weights.

    - `positions`: with and without, and over their width. `rewiring`: the graph that the flow is on.

    - `steps`: Euler's step size. `solvers`: all of them. `time`: accuracy along the flow.

    With `--address`, or a share of the machine for a batch, several batches run at once, by Ray (`beltrami[tune]`): as
    many as there is room for, of `--together` runs each. The table is the same; seconds are those of a shared machine.

    Examples:

    - `beltrami study random --device cuda`

    - `beltrami study random --device cuda --address auto --gpus-per-batch 0.5`

    - `beltrami study planetoid --datasets cora --methods blend,uniform --inits 5 --resume`
    """
    from beltrami.lab.study import (
        STUDIES,
        Executor,
        LocalExecutor,
        RecordLog,
        plan,
        read_lines,
        reuse,
        study_named,
        tabulate,
    )
    from beltrami.report.study.terminal import studies, tables

    if name is None:
        studies(STUDIES)
        return
    chosen = study_named(name)
    path = out / f"{name}.jsonl"
    if show:
        found = read_lines(path)
        if not found:
            raise ValueError(f"there are no results at {path}: run `beltrami study {name}` first, or set `--out`.")
        tables(tabulate(chosen, found), path=path)
        return
    if address is None and cpus_per_batch is None and gpus_per_batch is None:
        place: Executor = LocalExecutor(chosen.work, check_device(device))
    else:
        place = _fleet(chosen.work, device, cpus=cpus_per_batch, gpus=gpus_per_batch, address=address or "local")
    tasks = plan(
        chosen,
        datasets=_names(datasets),
        methods=_names(methods),
        splits=splits,
        inits=inits,
        settings=settings or [],
    )
    check_folder(out)
    with RecordLog(path, resume=resume) as ledger:
        reuse(chosen, tasks, ledger)
        _carry_out(place, tasks, ledger, together=together)
        tables(tabulate(chosen, ledger.lines), path=path)


def _fleet(work: "Work", device: str, *, cpus: float | None, gpus: float | None, address: str) -> "Executor":
    """The processes of a cluster, where Ray is installed."""
    share = share_of("batch", device=device, cpus=cpus, gpus=gpus, address=address)
    try:
        from beltrami.lab.ray_cluster import Cluster
        from beltrami.lab.study.ray_executor import RayExecutor
    except ImportError as error:
        raise needs_ray("beltrami study --address", error) from None
    return RayExecutor(work, Cluster(share, address=address))


def _carry_out(place: "Executor", tasks: "list[PlannedRun]", ledger: "RecordLog", *, together: int | None) -> None:
    """Do what is not done; one who interrupts is told how to go on."""
    from beltrami.data import load
    from beltrami.lab.study import pending, run_study
    from beltrami.report.study.watch import watching
    from beltrami.report.terminal import downloading

    todo = pending(tasks, ledger)
    if not todo:
        return
    with downloading() as progress:
        for dataset in dict.fromkeys(task.config.dataset for task in todo):
            load(dataset, progress=progress)  # what is not at hand is missed now, not after hours
    try:
        with place, watching(len(todo), name=ledger.path.stem) as watch:
            run_study(place, todo, ledger, together=together, watch=watch)
    except KeyboardInterrupt:
        ledger.read_again()
        left = len(pending(tasks, ledger))
        command = shlex.join(["beltrami", *sys.argv[1:], *([] if "--resume" in sys.argv else ["--resume"])])
        typer.echo(
            f"beltrami: interrupted with {len(tasks) - left} of {len(tasks)} runs in {ledger.path}: go on with "
            f"`{command}`.",
            err=True,
        )
        raise typer.Exit(130) from None


def _names(given: Sequence[str] | None) -> list[str]:
    return [name.strip() for text in given or () for name in text.split(",") if name.strip()]
