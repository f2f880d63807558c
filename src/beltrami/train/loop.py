"""The training loop: epochs of a program, early stopping by validation, and the result of each run."""

import math
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from beltrami.errors import NotFinite, SolverError
from beltrami.scheme import Stats
from beltrami.train.callback import Epoch
from beltrami.train.state import TrainingState, copies
from beltrami.train.training import Training
from beltrami.train.validation import AT_END, TimeGrid, ValidationScore

ADVICE = "try a smaller learning rate or a shorter time."
MOST_HALVINGS = 3  # of the learning rate, after a loss that is not finite
SNAPSHOT_EVERY = 50  # epochs between the states to which such a training returns
GOOD = "good"  # the name of the snapshot in a checkpoint


class TrainingWarning(UserWarning):
    """Something in a training went wrong and was mended; the message says what and how."""


@dataclass(frozen=True)
class Fit:
    """The result of training; the model itself holds the weights of the best epoch."""

    best: ValidationScore  # at the terminal time to use
    best_epoch: int  # with self-training, epochs are counted through both rounds
    epochs: int  # that were trained
    seconds: float  # wall time; of runs trained together, the share of one
    stats: Stats  # what the solves cost

    def to_json(self) -> dict[str, Any]:
        """Return the fit as plain values."""
        return asdict(self)

    @staticmethod
    def from_json(values: dict[str, Any]) -> "Fit":
        """Return the fit that :meth:`to_json` wrote."""
        return Fit(**values | {"best": ValidationScore(**values["best"]), "stats": Stats(**values["stats"])})

    def then(self, other: "Fit") -> "Fit":
        """Return the fit of a later round with the epochs, time and cost of this one added."""
        seconds, stats = self.seconds + other.seconds, Stats.total((self.stats, other.stats))
        return Fit(other.best, self.epochs + other.best_epoch, self.epochs + other.epochs, seconds, stats)


@dataclass
class _Run:
    best: ValidationScore = field(default_factory=lambda: ValidationScore(-math.inf, -math.inf, 0.0))
    best_epoch: int = 0
    epochs: int = 0
    stats: Stats = field(default_factory=Stats)
    error: SolverError | None = None
    going: bool = True
    halvings: int = 0  # of the learning rate

    def to_json(self) -> dict[str, Any]:
        return asdict(replace(self, error=None))

    @staticmethod
    def from_json(values: dict[str, Any]) -> "_Run":
        return _Run(**values | {"best": ValidationScore(**values["best"]), "stats": Stats(**values["stats"])})


class Program(ABC):
    """The computations of an epoch for some runs, each of which is a row of the program."""

    runs: list[int]  # the index of the run in each row
    stats: Stats  # what the last step cost each row

    @property
    @abstractmethod
    def parameters(self) -> Iterable[Tensor]:
        """The parameters that are trained."""

    @abstractmethod
    def step(self, epoch: int) -> list[float]:
        """Take the gradient step of an epoch, counted from 1, and return the loss of each row before it."""

    @abstractmethod
    def validate(self, time_grid: TimeGrid) -> list[ValidationScore]:
        """Return the best score of each row over the time grid of the training, or over ``AT_END``."""

    @abstractmethod
    def keep_best(self, rows: list[int]) -> None:
        """Keep the current weights of these rows as the best of their runs."""

    @abstractmethod
    def drop_all_but(self, rows: list[int]) -> None:
        """Allow the program to stop computing the other rows; ``runs`` says which ones remain."""

    @abstractmethod
    def restore_best(self) -> None:
        """Give the model of every run its best weights."""

    def state(self) -> TrainingState | None:
        """Return copies of what a step changes: weights, best weights, optimiser, random numbers; None if the program
        cannot go on from a copy."""
        return None

    def load_state(self, state: TrainingState) -> None:
        """Go on from a state that :meth:`state` returned."""
        raise NotImplementedError

    @abstractmethod
    def validate_best(self) -> list[ValidationScore]:
        """Return the best score of every run over the time grid, at its best weights."""


class Loop:
    """Trains the runs of a program: an iterator of epochs, each a gradient step and a validation.

    A run ends when its validation score has not improved for ``training.patience`` epochs. When a loss is not finite,
    one run alone returns to a state at most ``SNAPSHOT_EVERY`` epochs before and goes on with half the learning rate,
    at most ``MOST_HALVINGS`` times; of several runs together, the run ends with an error.
    """

    def __init__(self, program: Program, training: Training) -> None:
        self.program, self.training = program, training
        self._runs = [_Run() for _ in program.runs]
        self._seconds, self._number = 0.0, 0  # the number of the last epoch
        self._good = self.state()  # the last snapshot

    def __iter__(self) -> Iterator[Epoch]:
        while self._number < self.training.epochs and self._going():
            start = time.perf_counter()
            self._number += 1
            try:
                epoch = self._epoch(self._number)
            except NotFinite as error:
                self._return_to_snapshot(error)
                continue
            finally:
                self._seconds += time.perf_counter() - start
            if epoch is None:
                return
            if self._number % SNAPSHOT_EVERY == 0 and all(math.isfinite(score.minus_loss) for score in epoch.scores):
                self._good = self.state()
            yield epoch

    def state(self) -> TrainingState | None:
        """Return where the training stands; None if it cannot go on from there."""
        state = self.program.state()
        if state is not None:
            runs = [run.to_json() for run in self._runs]
            state.values.update(epoch=self._number, runs=runs, seconds=self._seconds)
        return state

    def checkpoint(self) -> TrainingState:
        """Return where the training stands, with the last snapshot, so that it goes on as if it had not stopped."""
        state = self.state()
        if state is None or self._good is None:
            raise ValueError("models that are trained together have no checkpoints: train one with `fit`.")
        return TrainingState(
            {**state.tensors, **copies(GOOD, self._good.tensors)}, {**state.values, GOOD: self._good.values}
        )

    def go_on_from(self, checkpoint: TrainingState) -> None:
        """Go on from what :meth:`checkpoint` returned."""
        self._load(checkpoint)
        self._good = TrainingState(checkpoint.part(GOOD), checkpoint.values[GOOD])

    def _load(self, state: TrainingState) -> None:
        self._number, self._seconds = state.values["epoch"], state.values["seconds"]
        self._runs = [_Run.from_json(values) for values in state.values["runs"]]
        self.program.load_state(state)

    def _return_to_snapshot(self, error: NotFinite) -> None:
        """Go back to the last snapshot with half the learning rate, or end the run with the error."""
        if self._good is None:
            raise NotFinite(f"{error}: {ADVICE}") from error
        good, seconds = self._good, self._seconds
        (saved,) = good.values["runs"]
        if saved["halvings"] == MOST_HALVINGS:
            text = f"{error}, with 1/{2**MOST_HALVINGS} of the learning rate too: {ADVICE}"
            self._runs[0].going, self._runs[0].error = False, NotFinite(text)
            return
        saved["halvings"] += 1
        good.values["rates"] = [rate / 2 for rate in good.values["rates"]]
        self._load(good)
        self._seconds = seconds
        text = f"{error}: the training goes back to epoch {self._number} with half the learning rate."
        warnings.warn(text, TrainingWarning, stacklevel=2)

    def finish(self) -> list[Fit | SolverError]:
        """Give the models their best weights, choose their terminal times, and return the result of each run."""
        start = time.perf_counter()
        self.program.restore_best()
        if any(run.error is None for run in self._runs):
            for run, score in zip(self._runs, self.program.validate_best(), strict=True):
                run.best = max(run.best, score)
        seconds = (self._seconds + time.perf_counter() - start) / len(self._runs)
        return [run.error or Fit(run.best, run.best_epoch, run.epochs, seconds, run.stats) for run in self._runs]

    def _epoch(self, number: int) -> Epoch | None:
        """Train an epoch; None if no run survived its step."""
        self.program.drop_all_but(list(self._going()))
        try:
            losses = self._step(number)
            active = self._going()
            if not active:
                return None
            whole_grid = number % self.training.validate_every == 0 or number == self.training.epochs
            scores = self.program.validate(self.training.time_grid if whole_grid else AT_END)
        except ValueError as error:  # inputs were checked before: a state that is not finite comes from the weights
            if all(bool(torch.isfinite(parameter).all()) for parameter in self.program.parameters):
                raise
            raise NotFinite(f"the weights became NaN or infinite in epoch {number}") from error
        improved = [row for row, run in active.items() if scores[row] > run.best]
        for row in improved:
            active[row].best, active[row].best_epoch = scores[row], number
        self.program.keep_best(improved)
        for run in active.values():
            run.going = number - run.best_epoch < self.training.patience
        return Epoch(
            number,
            runs=tuple(self.program.runs[row] for row in active),
            losses=tuple(losses[row] for row in active),
            scores=tuple(scores[row] for row in active),
            best=tuple(run.best for run in active.values()),
            evaluations=sum(run.stats.evaluations for run in self._runs),
            most_epochs=self.training.most_epochs,
            going=len(self._going()),
        )

    def _step(self, number: int) -> list[float]:
        """Take a gradient step and return the losses; of several runs, one whose loss is not finite ends."""
        losses = self.program.step(number)
        for row, run in self._going().items():
            run.epochs = number
            run.stats.add(self.program.stats)
            if not math.isfinite(losses[row]):
                reason = f"the loss became {losses[row]} in epoch {number}"
                if self._good is not None:
                    raise NotFinite(reason)
                run.going, run.error = False, NotFinite(f"{reason}: {ADVICE}")
        return losses

    def _going(self) -> dict[int, _Run]:
        """Return the runs that have not ended, by their rows."""
        return {row: self._runs[run] for row, run in enumerate(self.program.runs) if self._runs[run].going}
