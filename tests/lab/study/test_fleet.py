"""Batches on a cluster: what they find is what they find here, and a process that dies takes nobody with it."""

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from watcher import Seen

from beltrami.config import RunConfig
from beltrami.errors import DataError, SolverError, UnknownName
from beltrami.lab.resources import Resources
from beltrami.lab.study import (
    STUDIES,
    Executor,
    LocalExecutor,
    PlannedRun,
    Record,
    RecordLog,
    plan,
    run_study,
    tabulate,
)
from beltrami.lab.study.work import Done, OnEpoch, Time, Train, Work
from beltrami.run import Problem

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")]
SHORT = ["train.epochs=3", "scheme.time=2", "scheme.kind=constant", "scheme.solver=rk4", "scheme.dt=1", "model.feat=8"]


class Mortal(Work):
    """Runs that end their process, or fail, by their seeds."""

    batches = True

    def one(self, config: RunConfig, problem: Problem, *, on_epoch: OnEpoch) -> Done:
        if config.seed == 1:
            os._exit(1)
        if config.seed == 2:
            raise UnknownName("thing", "that", ["other"])  # which cannot be sent
        return Done(None, {"pid": os.getpid()})

    def many(self, configs: Sequence[RunConfig], *, device: str, on_epoch: OnEpoch) -> list[Done | SolverError]:
        if len(configs) > 2:
            os._exit(1)
        if len(configs) == 2:
            raise torch.OutOfMemoryError("out of memory")
        raise AssertionError("one run is done alone")


class Meeting(Work):
    """Runs that end when all of them have begun."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.count = folder, count

    def one(self, config: RunConfig, problem: Problem, *, on_epoch: OnEpoch) -> Done:
        (self.folder / str(config.seed)).touch()
        end = time.monotonic() + 60
        while len(list(self.folder.iterdir())) < self.count:
            if time.monotonic() > end:
                raise SolverError("nobody came")
            time.sleep(0.02)
        return Done(
            None, {"pid": os.getpid(), "threads": torch.get_num_threads(), "cache": os.environ["BELTRAMI_CACHE"]}
        )


class Foreign(Work):
    """What the processes of the cluster do not know."""

    def one(self, config: RunConfig, problem: Problem, *, on_epoch: OnEpoch) -> Done:
        raise AssertionError("it never gets here")

    def __reduce__(self) -> Any:
        return __import__, ("beltrami.of_tomorrow",)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Ray, started once for all of these tests, with room for two batches; blocks of theirs do not end it."""
    ray = pytest.importorskip("ray")
    from beltrami.lab.ray_cluster import Cluster

    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with Cluster(Resources("batch", "cpu", cpus=0.5, gpus=0.0)) as running:
        assert running.room() >= 2
        yield SimpleNamespace(
            share=running.share, room=lambda: 2, __enter__=lambda: None, __exit__=lambda kind, error, at: None
        )


def tasks_on_digits(splits: int) -> list[PlannedRun]:
    return plan(STUDIES["random"], datasets=["digits"], methods=["blend"], splits=splits, inits=1, settings=SHORT)


def done(place: Executor, tasks: list[PlannedRun], path: Path, *, together: int) -> tuple[Seen, list[Record]]:
    seen = Seen()
    with RecordLog(path, resume=False) as ledger, place:
        run_study(place, tasks, ledger, together=together, watch=seen)
        return seen, ledger.lines


def fleet(work: Work, cluster: Any) -> Executor:
    from beltrami.lab.study.ray_executor import RayExecutor

    return RayExecutor(work, cluster)


def untimed(lines: list[Record]) -> list[dict[str, Any]]:
    values = [json.loads(line.to_json()) for line in lines]
    for value in values:
        del value["result"]["train_seconds"]
    return sorted(values, key=lambda value: int(value["seed"]))


def test_lines_are_those_of_one_process_up_to_their_order(cluster: Any, tmp_path: Path) -> None:
    tasks, threads = tasks_on_digits(5), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        _, here = done(LocalExecutor(Train(), "cpu"), tasks, tmp_path / "here", together=2)
    finally:
        torch.set_num_threads(threads)
    seen, there = done(fleet(Train(), cluster), tasks, tmp_path / "there", together=2)
    assert seen.sizes == [2, 2, 1]
    assert untimed(there) == untimed(here)
    assert [each.cells for each in tabulate(STUDIES["random"], there)] == [
        each.cells for each in tabulate(STUDIES["random"], here)
    ]


def test_batches_are_done_at_once_and_who_has_nothing_to_do_goes(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[Any] = []
    monkeypatch.setattr("ray.kill", killed.append)
    folder = tmp_path / "begun"
    folder.mkdir()
    _, lines = done(fleet(Meeting(folder, 2), cluster), tasks_on_digits(2), tmp_path / "lines", together=9)
    assert [line.error for line in lines] == [None] * 2
    pids = {line.also["pid"] for line in lines}
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert {(line.also["threads"], line.also["cache"]) for line in lines} == {(1, os.environ["BELTRAMI_CACHE"])}
    assert len(killed) == 1  # the first to be idle, while the other worked


def test_a_process_that_dies_or_has_no_memory_is_halved_and_then_alone(cluster: Any, tmp_path: Path) -> None:
    seen, lines = done(fleet(Mortal(), cluster), tasks_on_digits(4), tmp_path / "lines", together=4)
    assert seen.notes == [
        "4 runs together ended their process: half as many",
        "2 runs together are too many for the memory: half as many",
    ]
    errors = {line.seed: line.error for line in lines}
    assert errors == {
        0: None,
        1: "the run's process died: the machine may be short of memory",
        2: "UnknownName: unknown thing 'that': Known: other.",
        3: None,
    }


def test_a_machine_without_the_library_ends_the_study(cluster: Any, tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"a machine of the cluster cannot do runs \(.*No module named 'beltrami.of_tomorrow'\)"
    ):
        done(fleet(Foreign(), cluster), tasks_on_digits(1), tmp_path / "lines", together=1)
    assert (tmp_path / "lines").read_bytes() == b""


def test_what_is_timed_is_not_spread() -> None:
    pytest.importorskip("ray")
    from beltrami.lab.ray_cluster import Cluster

    with pytest.raises(ValueError, match=r"what is timed wants the machine to itself: leave `--address`"):
        fleet(Time(), Cluster(Resources("batch", "cpu", cpus=1.0, gpus=0.0)))
