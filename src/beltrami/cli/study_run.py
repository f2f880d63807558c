"""The runs of one study or of all: their executor, their records, and the time that they may take."""

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from beltrami.cli.option import check_device, check_folder, needs_ray

if TYPE_CHECKING:
    from beltrami.lab.executor import Executor, Worker
    from beltrami.lab.study.planning import PlannedRun, Study
    from beltrami.lab.study.record import Record, RecordLog
    from beltrami.lab.study.time_limit import TimeLimit
    from beltrami.lab.study.work import Work

FIRST = 20  # splits that every cell has before any cell gets more


@dataclass(frozen=True)
class Execution:
    """Options of the runs of a study: where they run and how many at once, their results and their time."""

    out: Path
    resume: bool
    device: str
    together: int | None = None
    address: str | None = None
    cpus: float | None = None
    gpus: float | None = None
    hours: float | None = None
    processes: int | None = None

    def executor(self, work: "Work") -> "tuple[Executor, int]":
        """Return the executor and the size of its batches."""
        from beltrami.lab.study.runner import BatchWorker, batch_size, local_executor

        size = batch_size(work, device=self.device, together=self.together)
        by_ray = not (self.address is None and self.cpus is None and self.gpus is None)
        if work.exclusive and (by_ray or self.processes not in (None, 1)):
            raise ValueError(
                "times are measured without other work on the machine: leave out `--address`, `--cpus-per-batch`, "
                "`--gpus-per-batch` and `--processes`."
            )
        if not by_ray:
            return local_executor(work, device=check_device(self.device), size=size, processes=self.processes)
        if self.processes is not None:
            raise ValueError("Ray decides how many batches it runs at once: leave out `--processes`.")
        worker, address = BatchWorker(work, self.device), self.address or "local"
        verb = "beltrami study --address"
        return ray_executor(verb, worker, "batch", self.device, cpus=self.cpus, gpus=self.gpus, address=address), size

    def limit(self, folder: "Mapping[str, Sequence[Record]]") -> "TimeLimit | None":
        """Return the time limit, which begins now, by the records of all studies; None for none."""
        from beltrami.lab.study.time_limit import TimeLimit

        if self.hours is None:
            return None
        records = [record for records in folder.values() for record in records]
        return TimeLimit(3600 * self.hours, records, device=self.device)


def run_one(study: "Study", runs: "Sequence[PlannedRun]", options: Execution, executor: "Executor", size: int) -> None:
    """Make the runs of a study that have no result, in batches of ``size``, and print its tables."""
    from beltrami.lab.study.planning import missing_cells
    from beltrami.lab.study.record import RecordLog, read_folder
    from beltrami.lab.study.summary import tabulate
    from beltrami.report.study_terminal import print_tables

    check_folder(options.out)
    with RecordLog(options.out / f"{study.name}.jsonl", resume=options.resume) as log:
        folder = read_folder(options.out)
        _run(study, runs, log, executor, size, options.limit(folder), folder)
        print_tables(tabulate(study, log.records), path=log.path, missing=missing_cells(study, log.records))


def run_all(datasets: Sequence[str], options: Execution) -> None:
    """Make the missing runs of all studies, and print how many are left. The first splits of every cell come before the
    others, and important rows before other rows. Cells with records of other settings, and datasets that are not on
    this machine, are left out."""
    from beltrami.data import CATALOGUE, Availability, available
    from beltrami.errors import DataError, UnknownName
    from beltrami.lab.study.planning import plan
    from beltrami.lab.study.record import read_folder
    from beltrami.lab.study.studies import BY_IMPORTANCE, FIRST_ROWS
    from beltrami.report.study_terminal import print_progress

    for name in datasets:
        if name not in CATALOGUE:
            raise UnknownName("dataset", name, CATALOGUE)
    check_folder(options.out)
    folder, found = read_folder(options.out), []
    limit, resume = options.limit(folder), options.resume
    for study in BY_IMPORTANCE:
        names = [name for name in study.datasets if name in (datasets or CATALOGUE)]
        if at_hand := [name for name in names if available(name) is not Availability.DOWNLOAD]:
            found.append((study, plan(study, datasets=at_hand)))
    if not found:
        raise DataError("no dataset of a study is on this machine: name the folder of the files in BELTRAMI_DATA.")
    for first in (True, False):
        for study, runs in found:
            some = [run for run in runs if not first or run.config.data.split_seed < FIRST]
            some.sort(key=lambda run: run.method not in FIRST_ROWS)
            _run_unattended(study, some, options, limit, folder, resume=resume or not first)
    done = {study.name: {each.identity for each in folder[study.name] if each.error is None} for study, _ in found}
    made = {study.name: sum(run.identity in done[study.name] for run in runs) for study, runs in found}
    print_progress({study.name: (made[study.name], len(runs)) for study, runs in found}, _command())


def _run_unattended(
    study: "Study",
    runs: "list[PlannedRun]",
    options: Execution,
    limit: "TimeLimit | None",
    folder: "dict[str, Sequence[Record]]",
    *,
    resume: bool,
) -> None:
    """Make those of the runs that have no result, and put their records into ``folder``; no cell of changed settings is
    run."""
    from beltrami.lab.study.planning import changed_cells
    from beltrami.lab.study.record import RecordLog, latest

    if limit is not None and limit.left <= 0 and study.name in folder:
        return
    executor, size = (replace(options, processes=None) if study.work.exclusive else options).executor(study.work)
    with RecordLog(options.out / f"{study.name}.jsonl", resume=resume) as log:
        changed = set(changed_cells(runs, latest(log.records)))
        for dataset, method in sorted(changed):
            typer.echo(f"{study.name}: {method} on {dataset} has records of other settings and is left out.", err=True)
        _run(study, [run for run in runs if run.group not in changed], log, executor, size, limit, folder)
        folder[study.name] = log.records


def _run(
    study: "Study",
    runs: "Sequence[PlannedRun]",
    log: "RecordLog",
    executor: "Executor",
    size: int,
    limit: "TimeLimit | None",
    folder: "Mapping[str, Sequence[Record]]",
) -> None:
    from beltrami.data import load
    from beltrami.lab.study.runner import pending, reuse, run_study
    from beltrami.report.progress import RunCounter, display
    from beltrami.report.study_terminal import describe_run

    reuse(study, runs, log, folder)
    if not (todo := pending(runs, log)) or (limit is not None and limit.left <= 0):
        return
    with display() as shown:
        for dataset in dict.fromkeys(run.config.dataset for run in todo):
            load(dataset, progress=shown.update)  # missing files are an error now, not after hours
    progress = resumable(log, lambda: f"{len(runs) - len(pending(runs, log))} of {len(runs)} runs")
    with progress, executor, display() as shown:
        watch = RunCounter(shown, len(todo), study.name, describe_run)
        run_study(executor, todo, log, batch_size=size, watch=watch, limit=limit)


def ray_executor(
    verb: str, worker: "Worker", unit: str, device: str, *, cpus: float | None, gpus: float | None, address: str
) -> "Executor":
    """Return an executor on a Ray cluster; a ``unit``, trial or batch, has one core and on cuda one GPU by default."""
    from beltrami.lab.ray_cluster import LOCAL, Ray, Resources

    gpus = float(device == "cuda") if gpus is None else gpus
    resources = Resources(unit, device, 1.0 if cpus is None else cpus, gpus)
    if address == LOCAL:
        check_device(device)
    with needs_ray(verb):
        return Ray(worker, resources, address=address)


@contextmanager
def resumable(log: "RecordLog", done: Callable[[], str]) -> Iterator[None]:
    """After an interrupt, print what is done and how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        log.reread()
        typer.echo(f"beltrami: interrupted with {done()} in {log.path}: go on with `{_command()}`.", err=True)
        raise typer.Exit(130) from None


def _command() -> str:
    """Return the command that goes on with the runs of this process."""
    arguments = sys.argv[1:] if "--resume" in sys.argv else [*sys.argv[1:], "--resume"]
    return shlex.join(["beltrami", *arguments])
