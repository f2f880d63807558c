"""Executors: run jobs in this process, in processes of this machine, or (``ray_cluster``) on a Ray cluster. A remote
executor sends a copy of its worker to each of its processes."""

import os
import signal
import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from threading import Thread
from typing import Any, Protocol

from beltrami.errors import in_words

OnEpoch = Callable[[int], None]  # called with the number of an epoch
OnReport = Callable[[Any, Any], bool]  # called with a job and a value that it reports; returns whether the job goes on
FOLDERS = ("BELTRAMI_DATA", "BELTRAMI_CACHE")


@dataclass(frozen=True)
class JobReport:
    """An intermediate value of a job, which then waits for the decision whether it goes on."""

    value: Any


@dataclass(frozen=True)
class Finished:
    """The last value of a job; a process whose job was not ``clean`` is replaced, since its device may be broken."""

    value: Any
    clean: bool = True


class Worker(Protocol):
    """Runs jobs, one at a time. Workers, jobs and values are pickled by remote executors."""

    def run(self, job: Any, on_epoch: OnEpoch) -> Generator[JobReport | Finished, None, None]:
        """Run a job: any number of reports, then ``Finished``."""


class Executor(AbstractContextManager["Executor"]):
    """Runs jobs while it has room for them. Leaving its ``with`` block abandons jobs that are not finished."""

    _running: Collection[Any]

    @property
    def busy(self) -> bool:
        """Whether a job is running."""
        return bool(self._running)

    @property
    def has_room(self) -> bool:
        """Whether one more job can start now."""
        return not self._running or len(self._running) < self.capacity()

    @abstractmethod
    def capacity(self) -> int:
        """How many jobs can run at once now."""

    @abstractmethod
    def submit(self, job: Any) -> None:
        """Start a job."""

    @abstractmethod
    def wait(self, on_report: OnReport, on_epoch: OnEpoch = lambda number: None) -> tuple[Any, Finished | None]:
        """Wait until a job ends, and return it with its outcome, None if its process died; a job that is stopped ends
        with its last report. Only jobs in this process call ``on_epoch``."""


class Local(Executor):
    """This process, which runs one job after the other."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self._running: list[Any] = []

    def __exit__(self, *_: object) -> None:
        self._running.clear()

    def capacity(self) -> int:
        return 1

    def submit(self, job: Any) -> None:
        self._running.append(job)

    def wait(self, on_report: OnReport, on_epoch: OnEpoch = lambda number: None) -> tuple[Any, Finished | None]:
        job = self._running.pop(0)
        with closing(self.worker.run(job, on_epoch)) as messages:
            for message in messages:
                if isinstance(message, Finished):
                    return job, message
                if not on_report(job, message.value):
                    return job, Finished(message.value)
        raise AssertionError("a worker ends every job with `Finished`")


class RemoteExecutor(Executor):
    """An executor with a process for each running job. A process runs one job after the other."""

    def __init__(self) -> None:
        self._stack = ExitStack()  # what else ends with the block
        self._idle: list[Any] = []
        self._running: dict[Any, tuple[Any, Any]] = {}  # process and job by the future of its next message

    @abstractmethod
    def start_process(self) -> Any:
        """Start a process with a ``WorkerProcess`` in it."""

    @abstractmethod
    def end_process(self, process: Any) -> None:
        """Kill a process."""

    @abstractmethod
    def call(self, process: Any, method: str, *arguments: Any) -> Any:
        """Call a method of the ``WorkerProcess`` and return a future."""

    @abstractmethod
    def first_done(self, futures: Sequence[Any]) -> Any:
        """Wait for one of the futures and return it."""

    @abstractmethod
    def result(self, future: Any) -> JobReport | Finished | None:
        """Return the result of a future that is done, None if the process died; raise errors of the worker itself."""

    def submit(self, job: Any) -> None:
        process = self._idle.pop() if self._idle else self.start_process()
        self._running[self.call(process, "start", job)] = process, job

    def wait(self, on_report: OnReport, on_epoch: OnEpoch = lambda number: None) -> tuple[Any, Finished | None]:
        while True:
            future = self.first_done(list(self._running))
            process, job = self._running.pop(future)
            try:
                message = self.result(future)
            except BaseException:
                self.end_process(process)
                raise
            if message is None or (isinstance(message, Finished) and not message.clean):
                self.end_process(process)
                return job, message
            self._idle.append(process)
            if isinstance(message, Finished):
                return job, message
            if not on_report(job, message.value):
                return job, Finished(message.value)
            self._idle.remove(process)
            self._running[self.call(process, "advance")] = process, job

    def __exit__(self, *_: object) -> None:
        self.abandon()
        self._stack.close()

    def abandon(self) -> None:
        """Kill all processes."""
        processes = [*self._idle, *(process for process, _ in self._running.values())]
        self._idle, self._running = [], {}
        for process in processes:
            self.end_process(process)


class Processes(RemoteExecutor):
    """``size`` processes of one thread each on this machine, by loky: two of them run two jobs in little more than the
    time of one, since one graph is seldom enough work for two cores. A process that dies ends its own job only; when
    the block is left, no process is alive."""

    def __init__(self, worker: Worker, size: int) -> None:
        super().__init__()
        if size < 1:
            raise ValueError(f"Processes needs a `size` of at least 1; got {size}.")
        self.worker, self.size = worker, size

    def capacity(self) -> int:
        return self.size

    def start_process(self) -> Any:
        from joblib.externals.loky import ProcessPoolExecutor

        threads, begin = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}, (self.worker, 1, data_folders())
        return ProcessPoolExecutor(1, timeout=None, env=threads, initializer=_start_worker, initargs=begin)

    def end_process(self, process: Any) -> None:
        process.shutdown(wait=True, kill_workers=True)

    def call(self, process: Any, method: str, *arguments: Any) -> Any:
        return process.submit(_call_worker, method, *arguments)

    def first_done(self, futures: Sequence[Any]) -> Any:
        return next(iter(wait(futures, return_when=FIRST_COMPLETED).done))

    def result(self, future: Any) -> Any:
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        try:
            return future.result()
        except TerminatedWorkerError:
            return None


def data_folders() -> dict[str, str]:
    """Return the folders of data and cache, by environment variable, that another process has to use too."""
    return {name: os.path.abspath(os.environ[name]) for name in FOLDERS if os.environ.get(name)}


class WorkerProcess:
    """A worker in another process, and the job that it has started."""

    def __init__(self, worker: Worker, threads: int, folders: Mapping[str, str]) -> None:
        import torch

        os.environ.update(folders)
        torch.set_num_threads(threads)
        self._worker = worker
        self._messages: Iterator[JobReport | Finished] = iter(())

    def start(self, job: Any) -> JobReport | Finished:
        """Run a job until its first message; a job that was stopped before it is dropped."""
        self._messages = iter(())
        self._messages = self._worker.run(job, lambda number: None)
        return self.advance()

    def advance(self) -> JobReport | Finished:
        """Run the job until its next message."""
        try:
            return next(self._messages)
        except Exception as error:  # not every exception can be pickled
            raise RuntimeError(f"a worker failed: {in_words(error)}") from None


_process: WorkerProcess | None = None  # of a process that `Processes` started


def _start_worker(worker: Worker, threads: int, folders: Mapping[str, str]) -> None:
    global _process
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that is interrupted kills its workers
    Thread(target=exit_after, args=(os.getppid(),), daemon=True).start()
    _process = WorkerProcess(worker, threads, folders)


def _call_worker(method: str, *arguments: Any) -> Any:
    return getattr(_process, method)(*arguments)


def exit_after(parent: int) -> None:
    """Wait until the parent of this process, which has this id, has ended, and end this process: nothing else would."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
