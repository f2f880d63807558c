"""TEMPORARY: `start_fit` on top of the callback of `fit`, by a thread. Delete this file when `beltrami.train` exports
`start_fit`, and import that in `trial.py` (there `_best` reads the best score of an epoch)."""

from queue import SimpleQueue
from threading import Thread
from typing import Any

from beltrami.train import Epoch, Fit, fit


class _Stopped(Exception):
    pass


class start_fit:
    """An iterator of epochs with ``stop()`` and ``result``."""

    def __init__(self, *arguments: Any) -> None:
        self.result: Fit
        self._arguments, self._over = arguments, False
        self._asked: SimpleQueue[bool] = SimpleQueue()
        self._told: SimpleQueue[Epoch | BaseException | None] = SimpleQueue()
        self._thread = Thread(target=self._train, daemon=True)
        self._thread.start()

    def __iter__(self) -> "start_fit":
        return self

    def __next__(self) -> Epoch:
        if self._over:
            raise StopIteration
        self._asked.put(True)
        told = self._told.get()
        if isinstance(told, Epoch):
            return told
        self._over = True
        raise StopIteration if told is None else told

    def stop(self) -> None:
        if not self._over:
            self._over = True
            self._asked.put(False)
            self._thread.join()

    def _train(self) -> None:
        try:
            self._wait()
            self.result = fit(*self._arguments, on_epoch=self._tell)
            self._told.put(None)
        except _Stopped:
            pass
        except BaseException as error:
            self._told.put(error)

    def _tell(self, epoch: Epoch) -> None:
        self._told.put(epoch)
        self._wait()

    def _wait(self) -> None:
        if not self._asked.get():
            raise _Stopped
