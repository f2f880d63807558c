"""Running a study: its planned runs in batches on an executor, and a record of each."""

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch

from beltrami.config.spec import RunConfig
from beltrami.errors import DataError, in_words
from beltrami.lab.executor import Executor, Finished, Local, OnEpoch, Processes
from beltrami.lab.study.planning import PlannedRun, Study, check_setups
from beltrami.lab.study.record import Record, RecordLog, latest, read_folder, setup_of
from beltrami.lab.study.studies import STUDIES
from beltrami.lab.study.time_limit import TimeLimit
from beltrami.lab.study.work import Outcome, Work
from beltrami.run import Problem, on_split

TOGETHER = 25  # on a GPU: runs trained as one program by default
STACKED = 2  # on a CPU: more runs in one program no longer fit into the cache


class Watch(Protocol):
    """Shows the progress of a study or a search: what is running, messages, and runs that have ended."""

    def status(self, text: str) -> None: ...
    def note(self, text: str) -> None: ...
    def end(self, record: Record) -> None: ...


@dataclass(frozen=True)
class Batch:
    """Runs that differ by their seeds alone and are trained as one program (``together``), or a single run."""

    runs: tuple[PlannedRun, ...]
    together: bool

    def __str__(self) -> str:
        first, many = self.runs[0], f", {len(self.runs)} together" if len(self.runs) > 1 else ""
        return f"{first.method} on {first.config.dataset}, split {first.config.data.split_seed}{many}"


@dataclass(frozen=True)
class Failed:
    """Why a batch of several runs failed as a whole, and the size of the batches to try next."""

    why: str
    size: int


class BatchWorker:
    """Runs batches on a device. Errors are returned as text, which can be pickled and keeps no tensors alive. A problem
    is loaded once for single runs that come after each other and differ by their seeds alone."""

    def __init__(self, work: Work, device: str) -> None:
        self.work, self.device = work, device
        self._setup = ""
        self._problem: Problem | str = ""

    def run(self, job: Batch, on_epoch: OnEpoch) -> Generator[Finished, None, None]:
        found = self._run_together(job, on_epoch) if job.together else [self._run_alone(job.runs[0].config, on_epoch)]
        yield Finished(found, clean=not isinstance(found, Failed) and all(isinstance(each, Outcome) for each in found))

    def _run_together(self, batch: Batch, on_epoch: OnEpoch) -> list[Outcome | str] | Failed:
        self._setup, self._problem = "", ""  # frees memory
        configs = [run.config for run in batch.runs]
        assert self.work.many is not None
        try:
            found = self.work.many(configs, self.device, on_epoch)
        except (torch.OutOfMemoryError, MemoryError):
            return _halved(batch, "are too many for the memory")
        except DataError as error:
            return [in_words(error)] * len(configs)
        except Exception as error:
            return Failed(f"one by one, since runs together fail ({in_words(error)})", size=1)
        return [each if isinstance(each, Outcome) else in_words(each) for each in found]

    def _run_alone(self, config: RunConfig, on_epoch: OnEpoch) -> Outcome | str:
        setup = setup_of(config)
        try:
            if setup != self._setup:
                self._setup, self._problem = setup, ""  # two problems may not fit into memory
                self._problem = self.work.load(config, device=self.device)
            if isinstance(self._problem, str):
                return self._problem
            return self.work.one(config, on_split(self._problem, config), on_epoch)
        except Exception as error:
            self._problem = self._problem or in_words(error)  # a failure to load is not repeated for every seed
            return in_words(error)


def batch_size(work: Work, *, device: str, together: int | None) -> int:
    """Return how many runs are trained as one program."""
    size = together if together is not None else TOGETHER if device.startswith("cuda") else 1
    if size < 1:
        raise ValueError(f"`--together` needs at least 1; got {size}.")
    return size if work.many is not None else 1


def local_executor(work: Work, *, device: str, size: int, processes: int | None = None) -> tuple[Executor, int]:
    """Return an executor on this machine and the size of its batches. With ``processes``, so many batches of ``size``
    runs are made at once. Else, on a GPU ``size`` runs are one program, and on a CPU they are shared by as many
    processes as torch uses threads."""
    if processes is not None and processes < 1:
        raise ValueError(f"`--processes` needs at least 1; got {processes}.")
    if processes is not None and processes > 1:
        return Processes(BatchWorker(work, device), processes), size
    processes = min(torch.get_num_threads(), size) if device == "cpu" else 1
    if processes == 1:
        return Local(BatchWorker(work, device)), size
    return Processes(BatchWorker(work, device), processes), min(STACKED, math.ceil(size / processes))


def pending(runs: Sequence[PlannedRun], log: RecordLog) -> list[PlannedRun]:
    """Return the runs without a result; runs that failed are repeated."""
    check_setups(runs, latest(log.records))
    done = log.done()
    return [run for run in runs if run.identity not in done]


def reuse(
    study: Study, runs: Sequence[PlannedRun], log: RecordLog, folder: Mapping[str, Sequence[Record]] | None = None
) -> int:
    """Copy the records of equal runs (settings, seeds and work) from other studies in the ``folder``, by default that
    of the log; return how many."""
    others = {name for name, other in STUDIES.items() if other.work == study.work} - {study.name}
    folder = read_folder(log.path.parent) if folder is None else folder
    known = {record.key: record for name in folder if name in others for record in folder[name] if record.error is None}
    wanted = [run for run in runs if run.identity not in log.done() and run.identity[1] in known]
    for run in wanted:
        log.append(replace(known[run.identity[1]], study=study.name, method=run.method))
    return len(wanted)


def run_study(
    executor: Executor,
    runs: Sequence[PlannedRun],
    log: RecordLog,
    *,
    batch_size: int,
    watch: Watch,
    limit: TimeLimit | None = None,
) -> None:
    """Make the runs and append a record of each. A run that fails leaves its error, and the others go on. A batch that
    is too large for the memory is halved; one that fails otherwise is repeated run by run. The runs of a cell for which
    ``limit`` has no time are left out. The executor is inside its block and has a :class:`BatchWorker`."""
    waiting: dict[tuple[str, str], list[PlannedRun]] = {}
    for run in runs:
        waiting.setdefault(run.group, []).append(run)
    sizes = dict.fromkeys(waiting, batch_size)
    running: list[Batch] = []
    left_out: list[PlannedRun] = []

    def show(state: str = "") -> None:
        count = sum(len(batch.runs) for batch in running)
        others = f", {count} running" if count > len(running[-1].runs) else ""
        watch.status(f"{running[-1]}{state}{others}")

    while True:
        while executor.has_room and (group := next((group for group, left in waiting.items() if left), None)):
            batch = Batch(tuple(waiting[group][: sizes[group]]), together=sizes[group] > 1)
            if limit is not None and not limit.allows(batch.runs):
                left_out += waiting[group]
                waiting[group] = []
                continue
            del waiting[group][: sizes[group]]
            running.append(batch)
            if limit is not None:
                limit.begin(batch.runs)
            executor.submit(batch)
            show()
        if not executor.busy:
            break
        batch, outcome = executor.wait(lambda job, value: True, lambda number: show(f", epoch {number}"))
        running.remove(batch)
        if isinstance(outcome, Finished):
            found = outcome.value
        elif batch.together:
            found = _halved(batch, "ended their process")
        else:
            found = ["the run's process died: the machine may be short of memory"]
        if isinstance(found, Failed):
            group = batch.runs[0].group
            waiting[group] = [*batch.runs, *waiting[group]]
            if found.size < sizes[group]:  # else batches have become smaller while this one ran
                sizes[group] = found.size
                watch.note(f"{batch}: {found.why}")
            continue
        for run, each in zip(batch.runs, found, strict=True):
            record = run.record(each)
            log.append(record)
            watch.end(record)
        if limit is not None:
            limit.end(batch.runs)
    if left_out:
        watch.note(f"{left_out[0].study}: the time left is too short for {len(left_out)} runs")


def _halved(batch: Batch, why: str) -> Failed:
    count = len(batch.runs)
    return Failed(f"{count} runs together {why}: half as many", size=(count + 1) // 2)
