"""Fleet: the processes of a Ray cluster as the place where batches are done. Importing it imports Ray."""

from collections.abc import Sequence
from types import TracebackType
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from beltrami.config.spec import RunConfig
from beltrami.errors import DataError
from beltrami.lab.ray_cluster import Cluster
from beltrami.lab.resources import WorkerEnvironment
from beltrami.lab.study.batch import Batch
from beltrami.lab.study.executor import Executor
from beltrami.lab.study.work import Done, OnEpoch, Work
from beltrami.lab.study.worker import Failed, Found, Worker


class RayExecutor(Executor):
    """As many batches at once as the machines of a cluster have room for, each in a process of its own.

    Batches go out and what was found comes back; nothing else is kept on the cluster, and epochs are not told of. A
    process does one batch after the other. One that died is replaced, and so is one in which something failed: nobody
    knows what state its device is in. Machines that join the cluster are used, and one that is lost is a process that
    died.

    Args:
        work: what is done with a run; one that wants the machine to itself is refused.
        cluster: started or joined when the block is entered.
    """

    def __init__(self, work: Work, cluster: Cluster) -> None:
        super().__init__(work, cluster.share.device)
        if work.solitary:
            raise ValueError(
                "what is timed wants the machine to itself: leave `--address`, `--cpus-per-batch` and "
                "`--gpus-per-batch` out."
            )
        self.cluster = cluster
        self._idle: list[Any] = []
        self._under_way: dict[Any, tuple[Any, Batch]] = {}

    def __enter__(self) -> "RayExecutor":
        self.cluster.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._idle, self._under_way = [], {}
        self.cluster.__exit__(kind, error, at)

    @property
    def busy(self) -> bool:
        return bool(self._under_way)

    @property
    def room(self) -> bool:
        return not self.busy or len(self._under_way) < self.cluster.room()

    def give(self, batch: Batch) -> None:
        hand = self._idle.pop() if self._idle else self._hire()
        self._under_way[hand.do.remote(batch.configs, together=batch.together)] = hand, batch

    def take(self, on_epoch: OnEpoch) -> tuple[Batch, Found]:
        while self._idle:  # there is nothing for them to do, and others may wait for their share
            ray.kill(self._idle.pop())
        (answer,), _ = ray.wait(list(self._under_way), num_returns=1)
        hand, batch = self._under_way.pop(answer)
        try:
            found: Found = ray.get(answer)
        except RayTaskError:  # which is an error of ours, not of the process
            raise
        except RayError as error:
            return batch, _lost(batch, error)
        if not isinstance(found, Failed) and all(isinstance(each, Done) for each in found):
            self._idle.append(hand)
        else:
            ray.kill(hand)
        return batch, found

    def _hire(self) -> Any:
        share = self.cluster.share
        asked = {"num_cpus": share.cpus, "num_gpus": share.gpus, "max_restarts": 0, "max_task_retries": 0}
        return ray.remote(_Hand).options(**asked).remote(self.work, share.device, share.surroundings())


class _Hand:
    """A worker in a process of the cluster."""

    def __init__(self, work: Work, device: str, surroundings: WorkerEnvironment) -> None:
        surroundings.enter()
        self._worker = Worker(work, device=device)

    def do(self, configs: Sequence[RunConfig], *, together: bool) -> Found:
        return self._worker.do(configs, together=together, on_epoch=lambda number, going: None)


def _lost(batch: Batch, error: RayError) -> Found:
    """What is known of a batch whose process is no more."""
    if isinstance(error, RayActorError) and error.actor_init_failed:
        why = str(error).strip().splitlines()[-1]
        raise DataError(f"a machine of the cluster cannot do runs ({why}): install the same library there.") from error
    if batch.together:
        return Failed("ended their process", crowded=True)
    return ["the run's process died: the machine may be short of memory"]
