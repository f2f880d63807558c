"""Crew: processes of one thread each that share the runs of an ensemble, for machines with several CPU cores."""

import math
import os
import pickle
import queue
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import Any

import torch
from torch import Tensor

from beltrami.data import Split
from beltrami.errors import SolverError
from beltrami.model import Classifier, Inputs
from beltrami.train.fit import Fit, Training
from beltrami.train.worker import Found, Problem, state

STACK = 2  # runs that a worker takes as one program: more share more calls, but fall out of the cache


class Crew:
    """Workers that train many models as :func:`fit_many` does, each of them on a core of its own.

    One graph is seldom enough work for two cores: a product of Cora takes a tenth of a millisecond. Runs are
    independent, and two processes of one thread take two of them in little more than the time of one.

    To start a worker takes some seconds, once: they wait for work until the block ends. An error in a worker is raised
    here; so is its death. When the block is left, by whatever way, none of them lives on.

    Args:
        size: how many; as many as torch may use threads unless given.
    """

    def __init__(self, size: int | None = None) -> None:
        self.size = torch.get_num_threads() if size is None else size
        if self.size < 1:
            raise ValueError(f"Crew needs a `size` of at least 1; got {self.size}.")
        self._workers: list[_Worker] = []

    def __enter__(self) -> "Crew":
        self._workers = [_Worker() for _ in range(self.size)]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for worker in self._workers:
            worker.end()
        self._workers = []

    def fit_many(
        self,
        models: Sequence[Classifier],
        inputs: Inputs,
        y: Tensor,
        splits: Sequence[Split],
        training: Training,
        *,
        on_epoch: Callable[[int, int], None] | None = None,
    ) -> list[Fit | SolverError]:
        """As :func:`~beltrami.train.fit_many`, with ``training`` and the models such that they can be pickled.

        ``on_epoch`` is told of the epochs of every worker as they come, with how many runs are not done in all.
        """
        if len(models) != len(splits) or not models:
            raise ValueError(f"Crew needs a split for every model; got {len(models)} models, {len(splits)} splits.")
        if not self._workers:
            raise ValueError("a Crew works inside its block alone: `with Crew() as crew: crew.fit_many(...)`.")
        found: list[Fit | SolverError | None] = [None] * len(models)
        going = [1] * len(models)

        def done(runs: range, results: list[Found]) -> None:
            for run, (one, tensors) in zip(runs, results, strict=True):
                found[run] = one
                _give(models[run], tensors)

        def told(runs: range, number: int, left: int) -> None:
            going[runs.start : runs.stop] = [int(k < left) for k in range(len(runs))]
            if on_epoch is not None:
                on_epoch(number, sum(going))

        problem = _pickled(("problem", Problem(inputs, y, training)))
        for worker in self._workers:
            worker.send(problem)
        self._share(_stacks(len(models), self.size), models, splits, done, told)
        return [one for one in found if one is not None]

    def _share(
        self,
        stacks: list[range],
        models: Sequence[Classifier],
        splits: Sequence[Split],
        done: Callable[[range, list[Found]], None],
        told: Callable[[range, int, int], None],
    ) -> None:
        """Hand out the stacks to whoever is free; a thread waits for each worker, and what it hears is queued."""
        heard: queue.Queue[tuple[_Worker, range, tuple[Any, ...]]] = queue.Queue()
        todo, left = iter(stacks), len(stacks)
        with ThreadPoolExecutor(self.size) as threads:

            def start(worker: _Worker) -> None:
                runs = next(todo, None)
                if runs is not None:
                    task = _pickled(("fit", [models[r] for r in runs], [splits[r] for r in runs]))
                    threads.submit(worker.ask, task, lambda message: heard.put((worker, runs, message)))

            try:
                for worker in self._workers:
                    start(worker)
                while left:
                    worker, runs, (kind, *content) = heard.get()
                    if kind == "error":
                        raise content[0]
                    if kind == "epoch":
                        told(runs, *content)
                    else:
                        done(runs, *content)
                        left -= 1
                        start(worker)
            except BaseException:
                self.__exit__(None, None, None)  # the threads wait for workers, and this block for the threads
                raise


class _Worker:
    """A process, and the two pipes to it."""

    def __init__(self) -> None:
        paths = os.pathsep.join(path for path in sys.path if path)
        environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        command = [sys.executable, "-c", "from beltrami.train.worker import main; main()"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment)

    def send(self, message: bytes) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(message)
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise self._death() from error

    def ask(self, message: bytes, hear: Callable[[tuple[Any, ...]], None]) -> None:
        """Send work and pass on what is answered, up to its result."""
        assert self.process.stdout is not None
        try:
            self.send(message)
            answer: tuple[Any, ...] = ("epoch",)
            while answer[0] == "epoch":
                answer = pickle.load(self.process.stdout)
                hear(answer)
        except (EOFError, pickle.UnpicklingError):
            hear(("error", self._death()))
        except Exception as error:
            hear(("error", error))

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):  # what was on its way to it
                pipe.close()

    def _death(self) -> RuntimeError:
        return RuntimeError(
            f"a worker of the Crew ended with code {self.process.wait()} before its runs were done; where that is -9 "
            "the machine may be short of memory: try a smaller `size`."
        )


def _stacks(runs: int, size: int) -> list[range]:
    """The runs in stacks, small enough that every worker has some."""
    width = min(STACK, math.ceil(runs / size))
    return [range(first, min(first + width, runs)) for first in range(0, runs, width)]


def _pickled(message: tuple[Any, ...]) -> bytes:
    try:
        return pickle.dumps(message)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"a Crew sends its work to other processes, and this cannot be sent ({error}): make optimisers and links "
            "from functions of a module or functools.partial, not lambdas, or use fit_many."
        ) from error


def _give(model: Classifier, tensors: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for name, tensor in state(model).items():
            tensor.copy_(tensors[name])
