"""Callbacks: what happens after each epoch, of one run or of many."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from beltrami.arguments import checked
from beltrami.train.validation import ValidationScore


@dataclass(frozen=True)
class Epoch:
    """The state of training after an epoch."""

    number: int  # from 1, counted through all rounds
    runs: tuple[int, ...]  # indices of the runs that took part; the next three go with them
    losses: tuple[float, ...]  # of training, before the step
    scores: tuple[ValidationScore, ...]  # after the step
    best: tuple[ValidationScore, ...]  # so far, in this round
    evaluations: int  # of the vector field so far, forward, of all runs
    most_epochs: int  # that there can be
    going: int = 0  # runs that early stopping has not ended


class Callback(ABC):
    """An object that hears of every epoch."""

    @abstractmethod
    def on_epoch(self, epoch: Epoch) -> None:
        """Act on an epoch; an exception ends the training."""

    @abstractmethod
    def close(self) -> None:
        """Release files and displays; called once training has ended, by an error as well."""


AnyCallback = Callback | Callable[[Epoch], object]
NAMES = ("loss", "metric", "val_loss", "time", "best_metric", "best_time")  # of the numbers that are written


@checked
class JSONLines(Callback):
    """Writes a file of JSON lines, one per epoch and run. Its fields are ``epoch``, ``run``, ``evaluations`` and
    ``NAMES``; numbers that are not finite are null. An older file is replaced when training begins; a training that
    goes on keeps the lines of the epochs before."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._file: IO[str] | None = None

    def on_epoch(self, epoch: Epoch) -> None:
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            before = self._lines_before(epoch.number)
            self._file = self.path.open("w")
            self._file.writelines(before)
        for run, values in _by_run(epoch):
            line = {"epoch": epoch.number, "run": run, **values, "evaluations": epoch.evaluations}
            self._file.write(json.dumps(line, allow_nan=False) + "\n")
        self._file.flush()  # so that others can follow the training

    def _lines_before(self, number: int) -> list[str]:
        """Return the lines of the file about earlier epochs; an incomplete line ends them."""
        lines: list[str] = []
        if number == 1 or not self.path.exists():
            return lines
        with self.path.open(errors="replace") as file:
            for line in file:
                with suppress(ValueError, TypeError, KeyError):
                    if json.loads(line)["epoch"] < number:
                        lines.append(line)
        return lines

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


@checked
class TensorBoard(Callback):
    """Writes scalars for TensorBoard, by tensorboardX; each run has a folder ``run-<index>``."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        try:
            self._make_writer: Callable[[str], Any] = import_module("tensorboardX").SummaryWriter
        except ImportError:
            raise ImportError("TensorBoard logs need tensorboardX: run `pip install beltrami[log]`.") from None
        self._writers: dict[int, Any] = {}

    def on_epoch(self, epoch: Epoch) -> None:
        for run, values in _by_run(epoch):
            if run not in self._writers:
                self._writers[run] = self._make_writer(str(self.folder / f"run-{run}"))
            for name, value in values.items():
                if value is not None:
                    self._writers[run].add_scalar(name, value, epoch.number)

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers = {}


def _by_run(epoch: Epoch) -> Iterator[tuple[int, dict[str, float | None]]]:
    for run, loss, score, best in zip(epoch.runs, epoch.losses, epoch.scores, epoch.best, strict=True):
        values = (loss, score.metric, -score.minus_loss, score.time, best.metric, best.time)
        yield run, {name: value if math.isfinite(value) else None for name, value in zip(NAMES, values, strict=True)}


def follow(epochs: Iterable[Epoch], callbacks: Iterable[AnyCallback]) -> None:
    """Train to the end, tell the callbacks of every epoch, and close them."""
    callbacks = list(callbacks)
    try:
        for epoch in epochs:
            for callback in callbacks:
                (callback.on_epoch if isinstance(callback, Callback) else callback)(epoch)
    finally:
        for callback in callbacks:
            if isinstance(callback, Callback):
                callback.close()
