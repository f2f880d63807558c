"""The launcher of several workers: starts them, watches them, and goes on when one is killed."""

import os
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

import typer

from beltrami.errors import DataError, Interrupted

LAUNCHED = "BELTRAMI_LAUNCHED"  # set for the workers of the launcher: the process that started the worker
LOST = 75  # exit code of a worker that lost another one
GRACE = 5.0  # seconds that the other workers have to end when one has failed
POLL = 0.1


@dataclass(frozen=True)
class Ending:
    """How a worker ended: its exit code, negative if it was killed, and the cause, which is the signal that killed it
    or an error message that is not printed yet."""

    code: int
    cause: str = ""

    @classmethod
    def of(cls, code: int, said: str = "") -> "Ending":
        """Return the ending of a process by its return code."""
        return cls(code, signal.Signals(-code).name if code < 0 else said)


class LaunchedWorker(ABC):
    """A worker that was started, on this machine or on another one."""

    @abstractmethod
    def poll(self) -> Ending | None:
        """Return how the worker ended; None while it runs."""

    @abstractmethod
    def terminate(self) -> None:
        """Ask the worker to stop, with a checkpoint."""

    @abstractmethod
    def kill(self) -> None:
        """End the worker, if it runs, and release its resources."""


class Starter(ABC):
    """Starts workers. ``patience``: seconds in which a dead worker is found, once another one has lost it."""

    patience: float

    @abstractmethod
    def start(self, words: Sequence[str], count: int) -> Sequence[LaunchedWorker]:
        """Start ``count`` workers, by rank, that run the command line of ``words``."""


class LocalWorker(LaunchedWorker):
    """A process of this machine, with ``variables`` added to its environment."""

    def __init__(self, words: Sequence[str], variables: Mapping[str, str]) -> None:
        environment = {**os.environ, **variables, LAUNCHED: str(os.getpid())}
        # In a session of its own: an interrupt reaches the launcher alone, which tells each worker once.
        command = [sys.executable, "-m", "beltrami", *words]
        self._process = subprocess.Popen(command, env=environment, start_new_session=True)

    def poll(self) -> Ending | None:
        code = self._process.poll()
        return None if code is None else Ending.of(code)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class LocalStarter(Starter):
    """Starts processes of this machine, of ``threads`` threads each unless OMP_NUM_THREADS is set."""

    patience = GRACE

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def start(self, words: Sequence[str], count: int) -> Sequence[LaunchedWorker]:
        shared = {"OMP_NUM_THREADS": threads_of_worker(self.threads), **meeting("127.0.0.1", count)}
        return [LocalWorker(words, {**shared, "RANK": str(k), "LOCAL_RANK": str(k)}) for k in range(count)]


def threads_of_worker(default: int) -> str:
    """Return the number of threads of every worker."""
    return os.environ.get("OMP_NUM_THREADS", str(default))


def meeting(address: str, count: int) -> dict[str, str]:
    """Return the variables by which ``count`` workers meet at a free port of this machine, which has the address."""
    with socket.socket() as free:
        free.bind(("", 0))
        port = str(free.getsockname()[1])
    return {"MASTER_ADDR": address, "MASTER_PORT": port, "WORLD_SIZE": str(count)}


def launch(count: int, starter: Starter) -> None:
    """Run this command in ``count`` workers. When one is killed, all end, and a training with the remaining number of
    workers goes on from the last checkpoint; when one fails by an error, the command ends with its exit code."""
    words = sys.argv[1:]
    while True:
        endings = _run_workers(words, count, starter)
        if not any(ending.code for ending in endings):
            return
        dead = {rank: ending.cause for rank, ending in enumerate(endings) if ending.code < 0}
        if not dead:
            _fail(endings)
        rank, cause = next(iter(dead.items()))
        count -= len(dead)
        if not count:
            raise DataError(f"worker {rank} ended by {cause}, and none is left: go on with `--resume`.")
        left = f"{count} worker{'s' * (count > 1)}"
        say(f"worker {rank} ended by {cause}; going on from the last checkpoint with {left}.")
        words = [word for word in words if word not in ("--force", "--resume")] + ["--resume"]


def say(message: str) -> None:
    """Print a line about the workers."""
    typer.echo(f"beltrami: {message}", err=True)


@contextmanager
def reported_once() -> Iterator[None]:
    """Let one process report how a worker ends in a block: the launcher reports a lost worker, the first worker an
    interrupt or an error of all workers."""
    from beltrami.distributed.workers import WorkerLost, is_shared

    first = os.environ.get("RANK", "0") == "0"
    try:
        yield
    except WorkerLost:
        if LAUNCHED in os.environ:
            raise typer.Exit(LOST) from None
        raise
    except Interrupted as error:
        if first:
            raise
        raise typer.Exit(error.code) from None
    except Exception as error:
        if first or not is_shared(error):
            raise
        raise typer.Exit(1) from None


def _fail(endings: Sequence[Ending]) -> NoReturn:
    """End the command as the first worker that failed by an error."""
    first = next((ending for ending in endings if ending.code not in (0, LOST)), None)
    if first is None:
        raise DataError("the workers lost each other, but none was killed: check the network, go on with `--resume`.")
    if first.cause:
        say(first.cause)
    raise typer.Exit(first.code)


def _run_workers(words: Sequence[str], count: int, starter: Starter) -> list[Ending]:
    """Start the workers, wait for them, and return how they ended; after the first failure the others are ended."""
    workers = starter.start(words, count)
    try:
        _wait(lambda: _have_ended(workers) or any(_codes(workers)), None)
        _wait(lambda: _have_ended(workers) or any(code not in (0, LOST) for code in _codes(workers)), starter.patience)
        _wait(lambda: _have_ended(workers), GRACE)
        return [worker.poll() or Ending(LOST) for worker in workers]
    except KeyboardInterrupt:
        for worker in workers:
            worker.terminate()
        _wait(lambda: _have_ended(workers), None)
        raise typer.Exit(_codes(workers)[0]) from None
    finally:
        for worker in workers:
            worker.kill()


def _codes(workers: Sequence[LaunchedWorker]) -> list[int]:
    """Return the exit codes of the workers that have ended."""
    return [ending.code for worker in workers if (ending := worker.poll()) is not None]


def _have_ended(workers: Sequence[LaunchedWorker]) -> bool:
    return len(_codes(workers)) == len(workers)


def _wait(condition: Callable[[], bool], seconds: float | None) -> None:
    """Wait until the condition holds, at most for ``seconds``."""
    end = None if seconds is None else time.monotonic() + seconds
    while not condition() and (end is None or time.monotonic() < end):
        time.sleep(POLL)
