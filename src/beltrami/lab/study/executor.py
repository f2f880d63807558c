"""Place: where the batches of a study are done."""

from abc import ABC, abstractmethod
from types import TracebackType

from beltrami.lab.study.batch import Batch
from beltrami.lab.study.work import OnEpoch, Work
from beltrami.lab.study.worker import Found, Worker


class Executor(ABC):
    """Takes batches while it has room, and gives them back as they end. When its block is left, what is under way
    there is given up.

    Args:
        work: what is done with a run.
        device: where to compute.
    """

    def __init__(self, work: Work, device: str) -> None:
        self.work, self.device = work, device

    @abstractmethod
    def __enter__(self) -> "Executor": ...

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...

    @property
    @abstractmethod
    def busy(self) -> bool:
        """Whether a batch is under way."""

    @property
    @abstractmethod
    def room(self) -> bool:
        """Whether one more can be."""

    @abstractmethod
    def give(self, batch: Batch) -> None:
        """Have a batch done."""

    @abstractmethod
    def take(self, on_epoch: OnEpoch) -> tuple[Batch, Found]:
        """Wait for a batch to end: which, and what was found. ``on_epoch`` hears of epochs that are told of here."""


class LocalExecutor(Executor):
    """This process, which does one batch at a time."""

    def __init__(self, work: Work, device: str) -> None:
        super().__init__(work, device)
        self._worker = Worker(work, device=device)
        self._batch: Batch | None = None

    def __enter__(self) -> "LocalExecutor":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._batch = None

    @property
    def busy(self) -> bool:
        return self._batch is not None

    @property
    def room(self) -> bool:
        return self._batch is None

    def give(self, batch: Batch) -> None:
        assert self._batch is None, "there is room for one"
        self._batch = batch

    def take(self, on_epoch: OnEpoch) -> tuple[Batch, Found]:
        batch, self._batch = self._batch, None
        assert batch is not None, "nothing was given"
        return batch, self._worker.do(batch.configs, together=batch.together, on_epoch=on_epoch)
