"""Workers: what runs the jobs of an executor, and how one lives in another process."""

import os
import signal
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, Protocol

from beltrami.errors import in_words

OnEpoch = Callable[[int, int], None]
"""Called with the number of an epoch and how many runs are still training."""
FOLDERS = ("BELTRAMI_DATA", "BELTRAMI_CACHE")


@dataclass(frozen=True)
class JobReport:
    """An intermediate value of a job, which waits until it is told to go on or to stop."""

    value: Any


@dataclass(frozen=True)
class Finished:
    """The last value of a job; a process whose job was not ``clean`` is replaced, since its device may be broken."""

    value: Any
    clean: bool = True


@dataclass(frozen=True)
class Died:
    """The process of a job ended before the job did."""


class Worker(Protocol):
    """Runs jobs, one at a time. Workers, jobs and values are pickled by remote executors."""

    def run(self, job: Any, on_epoch: OnEpoch) -> Generator[JobReport | Finished, None, None]:
        """Run a job: any number of reports, then ``Finished``."""


@dataclass(frozen=True)
class WorkerEnvironment:
    """What another process needs in order to compute as this one does: folders by environment variable, threads."""

    threads: int
    folders: Mapping[str, str] = field(
        default_factory=lambda: {name: os.path.abspath(os.environ[name]) for name in FOLDERS if os.environ.get(name)}
    )

    def enter(self) -> None:
        """Make it the environment of this process."""
        import torch

        os.environ.update(self.folders)
        torch.set_num_threads(self.threads)


class WorkerProcess:
    """A worker in another process, and the job that it has started."""

    def __init__(self, worker: Worker, environment: WorkerEnvironment) -> None:
        environment.enter()
        self._worker = worker
        self._messages: Any = iter(())

    def start(self, job: Any) -> JobReport | Finished:
        """Run a job until its first message; a job that was stopped before it is dropped."""
        self._messages = None
        self._messages = self._worker.run(job, lambda number, going: None)
        return self.advance()

    def advance(self) -> JobReport | Finished:
        """Run the job until its next message."""
        try:
            message: JobReport | Finished = next(self._messages)
        except Exception as error:  # not every exception can be pickled
            raise RuntimeError(f"a worker failed: {in_words(error)}") from None
        return message


_process: WorkerProcess | None = None  # of a process that `Processes` started


def start_worker(worker: Worker, environment: WorkerEnvironment) -> None:
    """Make this process the process of a worker."""
    global _process
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that is interrupted kills its workers
    Thread(target=_exit_after, args=(os.getppid(),), daemon=True).start()
    _process = WorkerProcess(worker, environment)


def call_worker(method: str, *arguments: Any) -> JobReport | Finished:
    """Call a method of this process's worker."""
    message: JobReport | Finished = getattr(_process, method)(*arguments)
    return message


def _exit_after(parent: int) -> None:
    """End this process when its parent has ended: loky's own processes would wait for ever."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
