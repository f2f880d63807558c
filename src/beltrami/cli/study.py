"""The command ``study``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from beltrami.cli.option import Device, Resume, Settings, check_device, check_folder, ray_executor, resumable

if TYPE_CHECKING:
    from beltrami.lab.executor import Executor
    from beltrami.lab.study import PlannedRun, RecordLog
    from beltrami.lab.study.work import Work

NAMES = "planetoid, random, attention, positions, steps, solvers, runtime, rewiring, parameters or time"


def study(
    name: Annotated[str | None, Argument(help=f"Which study: {NAMES}. Without a name, they are listed.")] = None,
    datasets: Annotated[list[str] | None, Option(help="Datasets, separated by commas; else the study's.")] = None,
    methods: Annotated[list[str] | None, Option(help="Methods or recipe files, separated by commas.")] = None,
    splits: Annotated[int | None, Option(help="Random splits of each dataset.")] = None,
    inits: Annotated[int | None, Option(help="Runs from other seeds on each split.")] = None,
    settings: Settings = None,
    device: Device = "cpu",
    together: Annotated[int | None, Option(help="Runs in one program; by default 25 on a GPU, 1 on the CPU.")] = None,
    address: Annotated[str | None, Option(help="A Ray cluster, such as auto; `local` is this machine.")] = None,
    cpus_per_batch: Annotated[float | None, Option(help="Cores of a batch, with Ray; 1 by default.")] = None,
    gpus_per_batch: Annotated[float | None, Option(help="GPUs of a batch, with Ray; 1 with `--device cuda`.")] = None,
    resume: Resume = False,
    show: Annotated[bool, Option("--show", help="Print the tables of a results file and run nothing.")] = False,
    out: Annotated[Path, Option(help="Folder of the results file, NAME.jsonl.")] = Path("results/study"),
) -> None:
    """Measure a table or figure of the paper again, with intervals and the paper's figures next to ours.

    Every run leaves one line in the results file as soon as it ends, so that a study that was stopped, even killed,
    continues with `--resume`. A run that fails leaves its error, and is repeated then. A run that another study in the
    folder has made already is copied from there.

    - `planetoid`: Table 2. `random`: Table 3. `parameters`: how many there are. `runtime`: the two tables of times.

    - `attention`: the four diffusivities, frozen and live, against uniform weights.

    - `positions`: with and without, and over their width. `rewiring`: the graph that the flow is on.

    - `steps`: Euler's step size. `solvers`: all of them. `time`: accuracy along the flow.

    With `--address`, `--cpus-per-batch` or `--gpus-per-batch`, Ray (`beltrami[tune]`) runs as many batches of
    `--together` runs at once as there is room for. The table is the same; times are those of a shared machine.

    Examples:

    - `beltrami study random --device cuda`

    - `beltrami study random --device cuda --address auto --gpus-per-batch 0.5`

    - `beltrami study planetoid --datasets cora --methods blend,uniform --inits 5 --resume`
    """
    from beltrami.lab.study import STUDIES, RecordLog, plan, read_records, reuse, study_named, tabulate
    from beltrami.report.study_terminal import print_studies, print_tables

    if name is None:
        print_studies(STUDIES)
        return
    chosen = study_named(name)
    path = out / f"{name}.jsonl"
    if show:
        records = read_records(path)
        if not records:
            raise ValueError(f"there are no results at {path}: run `beltrami study {name}` first, or set `--out`.")
        print_tables(tabulate(chosen, records), path=path)
        return
    executor, size = _executor(chosen.work, device, together, address, cpus_per_batch, gpus_per_batch)
    runs = plan(
        chosen, datasets=_names(datasets), methods=_names(methods), splits=splits, inits=inits, settings=settings or []
    )
    check_folder(out)
    with RecordLog(path, resume=resume) as log:
        reuse(chosen, runs, log)
        _run(executor, runs, log, batch_size=size)
        print_tables(tabulate(chosen, log.records), path=path)


def _executor(
    work: "Work", device: str, together: int | None, address: str | None, cpus: float | None, gpus: float | None
) -> "tuple[Executor, int]":
    """Return the executor and the size of its batches."""
    from beltrami.lab.study import BatchWorker, batch_size, local_executor

    if address is None and cpus is None and gpus is None:
        return local_executor(
            work, device=device, size=batch_size(work, device=check_device(device), together=together)
        )
    if work.exclusive:
        raise ValueError(
            "times are measured without other work on the machine: leave out `--address`, `--cpus-per-batch` and "
            "`--gpus-per-batch`."
        )
    worker, where = BatchWorker(work, device), address or "local"
    executor = ray_executor(
        "beltrami study --address", worker, "batch", device=device, cpus=cpus, gpus=gpus, address=where
    )
    return executor, batch_size(work, device=device, together=together)


def _run(executor: "Executor", runs: "list[PlannedRun]", log: "RecordLog", *, batch_size: int) -> None:
    """Make the runs that are not done."""
    from beltrami.data import load
    from beltrami.lab.study import pending, run_study
    from beltrami.report.progress import counting, display
    from beltrami.report.study_terminal import describe_run

    todo = pending(runs, log)
    if not todo:
        return
    with display() as shown:
        for dataset in dict.fromkeys(run.config.dataset for run in todo):
            load(dataset, progress=shown.update)  # missing files are an error now, not after hours

    def done() -> str:
        log.reread()
        return f"{len(runs) - len(pending(runs, log))} of {len(runs)} runs in {log.path}"

    with resumable(done), executor, counting(len(todo), title=log.path.stem, describe=describe_run) as watch:
        run_study(executor, todo, log, batch_size=batch_size, watch=watch)


def _names(given: Sequence[str] | None) -> list[str]:
    return [name.strip() for text in given or () for name in text.split(",") if name.strip()]
