"""The interface between the training loop and the computations of an epoch."""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from torch import Tensor

from beltrami.scheme import Stats
from beltrami.train.state import TrainingState
from beltrami.train.validation import TimeGrid, ValidationScore


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

    def first_nonfinite(self) -> str:
        """Return the part of the model whose values are not finite in the next step."""
        raise NotImplementedError

    @abstractmethod
    def validate_best(self) -> list[ValidationScore]:
        """Return the best score of every run over the time grid, at its best weights."""
