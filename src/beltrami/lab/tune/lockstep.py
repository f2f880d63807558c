"""Lockstep: several trainings that take their epochs in turns."""

from collections.abc import Callable, Sequence
from threading import Semaphore, Thread

from beltrami.train import Epoch, Fit, ValidationScore

Run = Callable[[Callable[[Epoch], None]], Fit]
"""A training, given whom to tell of its epochs."""


class Halted(Exception):
    """Raised in a training that is to end now."""


def in_step(runs: Sequence[Run], on_round: Callable[[list[ValidationScore]], None]) -> list[Fit]:
    """Train all of the runs, one epoch of each in turn, and tell after each round the best reading that each has.

    A run that ends early keeps the best that it had. An error in a run, or one that ``on_round`` raises, ends them all.
    At any moment one of them works: they are threads for the sake of their turns alone.
    """
    turns = [_Turn(run) for run in runs]
    try:
        while True:
            for turn in turns:
                turn.take()
            if all(turn.fit is not None for turn in turns):
                return [turn.fit for turn in turns if turn.fit is not None]
            on_round([turn.best for turn in turns])
    finally:
        for turn in turns:
            turn.halt()


class _Turn:
    """One training, which waits after each epoch until it is its turn again."""

    def __init__(self, run: Run) -> None:
        self.best = ValidationScore(0.0, 0.0, 0.0)
        self.fit: Fit | None = None
        self._run, self._over, self._halted = run, False, False
        self._go, self._back = Semaphore(0), Semaphore(0)
        self._error: BaseException | None = None
        self._thread = Thread(target=self._work, daemon=True)
        self._thread.start()

    def take(self) -> None:
        """One epoch, or the end after the last; nothing where it is over."""
        if not self._over:
            self._go.release()
            self._back.acquire()
            if self._error is not None:
                raise self._error

    def halt(self) -> None:
        """End it, wherever it is."""
        if not self._over:
            self._halted = True
            self._go.release()
        self._thread.join()

    def _work(self) -> None:
        try:
            self._wait()
            self.fit = self._run(self._told)
            self.best = self.fit.best
        except Halted:
            pass
        except BaseException as error:
            self._error = error
        finally:
            self._over = True
            self._back.release()

    def _told(self, epoch: Epoch) -> None:
        (self.best,) = epoch.best
        self._back.release()
        self._wait()

    def _wait(self) -> None:
        self._go.acquire()
        if self._halted:
            raise Halted
