"""The training loop: epochs of a program, early stopping by validation, and the result of each run."""

import math
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch

from beltrami.errors import NotFinite, SolverError
from beltrami.scheme import Stats
from beltrami.train.base import Program
from beltrami.train.callback import Epoch
from beltrami.train.state import TrainingState, copies
from beltrami.train.training import Training
from beltrami.train.validation import AT_END, ValidationScore

ADVICE = "try a smaller learning rate or a shorter time."
MOST_HALVINGS = 3  # of the learning rate, after a loss that is not finite
SNAPSHOT_EVERY = 50  # epochs between the states to which such a training returns
SNAPSHOT = "snapshot"  # its name in a checkpoint


class TrainingWarning(UserWarning):
    """A training met an error and goes on; the message says which error, and what was done about it."""


@dataclass(frozen=True)
class Fit:
    """The result of training; the model itself holds the weights of the best epoch."""

    best: ValidationScore  # at the terminal time to use
    best_epoch: int  # epochs are counted through all rounds
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
        self._snapshot = self.state()  # the last snapshot

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
                self._snapshot = self.state()
            yield epoch

    def state(self) -> TrainingState | None:
        """Return copies of all that training changes; None for several runs together."""
        state = self.program.state()
        if state is not None:
            runs = [run.to_json() for run in self._runs]
            state.values.update(epoch=self._number, runs=runs, seconds=self._seconds)
        return state

    def checkpoint(self) -> TrainingState:
        """Return the state and the last snapshot, from which the training goes on as if it had not stopped."""
        state = self.state()
        if state is None or self._snapshot is None:
            raise ValueError("models that are trained together have no checkpoints: train one with `fit`.")
        return TrainingState(
            {**state.tensors, **copies(SNAPSHOT, self._snapshot.tensors)},
            {**state.values, SNAPSHOT: self._snapshot.values},
        )

    def go_on_from(self, checkpoint: TrainingState) -> None:
        """Go on from what :meth:`checkpoint` returned."""
        self._load(checkpoint)
        self._snapshot = TrainingState(checkpoint.part(SNAPSHOT), checkpoint.values[SNAPSHOT])

    def _load(self, state: TrainingState) -> None:
        self._number, self._seconds = state.values["epoch"], state.values["seconds"]
        self._runs = [_Run.from_json(values) for values in state.values["runs"]]
        self.program.load_state(state)

    def _return_to_snapshot(self, error: NotFinite) -> None:
        """Go back to the last snapshot with half the learning rate, or end the run with the error."""
        if self._snapshot is None:
            raise error
        snapshot, seconds = self._snapshot, self._seconds
        (saved,) = snapshot.values["runs"]
        if saved["halvings"] == MOST_HALVINGS:
            place = self._place_of_failure(self._number)
            text = f"{error} It does so with 1/{2**MOST_HALVINGS} of the learning rate too, first in {place}."
            self._runs[0].going, self._runs[0].error = False, NotFinite(text)
            return
        saved["halvings"] += 1
        snapshot.values["rates"] = [rate / 2 for rate in snapshot.values["rates"]]
        self._load(snapshot)
        self._seconds = seconds
        text = f"{error} The training goes back to epoch {self._number} with half the learning rate."
        warnings.warn(text, TrainingWarning, stacklevel=2)

    def _place_of_failure(self, number: int) -> str:
        """Return the part of the model that first was not finite in an epoch; the epochs since the last snapshot are
        trained again up to there."""
        assert self._snapshot is not None
        run = self._runs[0]
        self._load(self._snapshot)
        for k in range(self._number + 1, number):
            self.program.step(k)
        self._runs[0] = run
        return self.program.first_nonfinite()

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
            raise NotFinite(f"the weights became NaN or infinite in epoch {number}: {ADVICE}") from error
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
                error = NotFinite(f"the loss became {losses[row]} in epoch {number}: {ADVICE}")
                if self._snapshot is not None:
                    raise error
                run.going, run.error = False, error
        return losses

    def _going(self) -> dict[int, _Run]:
        """Return the runs that have not ended, by their rows."""
        return {row: self._runs[run] for row, run in enumerate(self.program.runs) if self._runs[run].going}
