"""Trainings take turns, and all end when one is told to."""

import threading
from collections.abc import Callable

import pytest

from beltrami.errors import SolverError
from beltrami.lab.tune.lockstep import Run, in_step
from beltrami.scheme import Stats
from beltrami.train import Epoch, Fit, ValidationScore


def waiting() -> list[str]:
    """Threads of trainings that were left behind."""
    return [thread.name for thread in threading.enumerate() if "(_work)" in thread.name]


def training(name: str, accuracies: list[float], log: list[str], *, fails_at: int | None = None) -> Run:
    """A training whose epochs have these accuracies."""

    def run(on_epoch: Callable[[Epoch], None]) -> Fit:
        for number, accuracy in enumerate(accuracies, start=1):
            if number == fails_at:
                raise SolverError(f"{name} broke down")
            log.append(f"{name}{number}")
            score = ValidationScore(accuracy, 0.0, 1.0)
            on_epoch(Epoch(number, (0,), (0.0,), (score,), (score,), 0, len(accuracies)))
        log.append(f"{name} over")
        return Fit(ValidationScore(accuracies[-1] + 0.5, 0.0, 1.0), len(accuracies), len(accuracies), 0.0, Stats())

    return run


def test_epochs_are_taken_in_turns_and_one_that_is_over_keeps_its_best() -> None:
    log: list[str] = []
    rounds: list[list[float]] = []
    runs = [training("a", [0.1, 0.2], log), training("b", [0.3, 0.4, 0.5, 0.6], log)]
    fits = in_step(runs, lambda readings: rounds.append([reading.accuracy for reading in readings]))
    assert log == ["a1", "b1", "a2", "b2", "a over", "b3", "b4", "b over"]
    assert rounds == [[0.1, 0.3], [0.2, 0.4], [0.7, 0.5], [0.7, 0.6]]
    assert [fit.best.accuracy for fit in fits] == [0.7, 1.1]
    assert not waiting()


def test_who_listens_can_end_them_all_at_once() -> None:
    log: list[str] = []

    def stop(readings: list[ValidationScore]) -> None:
        if readings[0].accuracy == 0.2:
            raise SystemExit(0)

    with pytest.raises(SystemExit):
        in_step([training("a", [0.1, 0.2, 0.3], log), training("b", [0.1, 0.2, 0.3], log)], stop)
    assert log == ["a1", "b1", "a2", "b2"]
    assert not waiting()


def test_an_error_in_one_ends_the_others() -> None:
    log: list[str] = []
    runs = [training("a", [0.1] * 3, log), training("b", [0.1] * 3, log, fails_at=2), training("c", [0.1] * 3, log)]
    with pytest.raises(SolverError, match=r"b broke down"):
        in_step(runs, lambda readings: None)
    assert log == ["a1", "b1", "c1", "a2"]
    assert not waiting()
