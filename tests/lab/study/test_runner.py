"""Runs are made once each, whatever fails on the way."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from study_records import Seen

from beltrami.config import RunConfig, override
from beltrami.errors import DataError, SolverError
from beltrami.lab.executor import Finished, Local, OnEpoch, Processes
from beltrami.lab.study.planning import PlannedRun, plan
from beltrami.lab.study.record import Record, RecordLog
from beltrami.lab.study.runner import BatchWorker, batch_size, local_executor, pending, reuse, run_study
from beltrami.lab.study.studies import STUDIES
from beltrami.lab.study.work import COUNT, FOLLOW, TIME, TRAIN, Outcome, Work
from beltrami.run import Problem, load_problem
from beltrami.train import count_parameters

SHORT = ["train.epochs=2", "scheme.time=2", "scheme.kind=constant", "scheme.solver=rk4", "scheme.dt=1", "model.feat=8"]


def failing(
    *,
    room: int = 99,
    broken: tuple[int, ...] = (),
    whole: Exception | None = None,
    load: Callable[..., Problem] = load_problem,
) -> Work:
    """Return work that fails where it is told to, and does nothing else."""

    def one(config: RunConfig, problem: Problem, on_epoch: OnEpoch) -> Outcome:
        assert problem.split.seed == config.data.split_seed
        on_epoch(1)
        if config.seed in broken:
            raise SolverError("the loss became nan")
        return Outcome(None, {"alone": 1})

    def many(configs: Sequence[RunConfig], device: str, on_epoch: OnEpoch) -> list[Outcome | SolverError]:
        if len(configs) > room:
            raise torch.OutOfMemoryError("out of memory")
        if whole is not None:
            raise whole
        return [SolverError("nan") if config.seed in broken else Outcome(None) for config in configs]

    return Work(one, many, load)


class DyingExecutor(Local):
    """Stands for a process that dies with batches of more than one run, and with the run of seed 1."""

    def wait(self, *given: Any) -> tuple[Any, Finished | None]:
        batch = self._running[0]
        if len(batch.runs) > 1 or batch.runs[0].config.seed == 1:
            return self._running.pop(), None
        return super().wait(*given)


class LastFirst(Local):
    """Has two jobs at once, and ends the one first that was submitted last."""

    def capacity(self) -> int:
        return 2

    def wait(self, *given: Any) -> tuple[Any, Finished | None]:
        self._running.reverse()
        return super().wait(*given)


def runs_on_digits(splits: int, study: str = "random", methods: Sequence[str] = ("blend",)) -> list[PlannedRun]:
    return plan(STUDIES[study], datasets=["digits"], methods=methods, splits=splits, inits=1, settings=SHORT)


def made(
    work: Work, runs: list[PlannedRun], path: Path, *, size: int, executor: type[Local] = Local
) -> tuple[Seen, list[Record]]:
    seen = Seen()
    size = batch_size(work, device="cpu", together=size)
    with RecordLog(path / "s.jsonl", resume=True) as log, executor(BatchWorker(work, "cpu")) as running:
        run_study(running, pending(runs, log), log, batch_size=size, watch=seen)
        return seen, log.records


def test_batches_have_the_size_asked_for_and_are_shown(tmp_path: Path) -> None:
    seen, records = made(failing(), runs_on_digits(5), tmp_path, size=2)
    assert seen.states == [f"blend on digits, split {text}" for text in ("0, 2 together", "2, 2 together", "4")]
    assert seen.ended == records
    assert [record.split_seed for record in records] == [0, 1, 2, 3, 4]
    seen, _ = made(failing(), runs_on_digits(1), tmp_path / "alone", size=1)
    assert seen.states == ["blend on digits, split 0", "blend on digits, split 0, epoch 1"]


def test_a_batch_too_large_for_the_memory_is_halved(tmp_path: Path) -> None:
    seen, records = made(failing(room=2), runs_on_digits(5), tmp_path, size=5)
    assert [record.error for record in records] == [None] * 5
    assert [record.split_seed for record in records] == [0, 1, 2, 3, 4]
    assert seen.notes == [
        f"blend on digits, split 0, {n} together: {n} runs together are too many for the memory: half as many"
        for n in (5, 3)
    ]


def test_runs_are_made_one_by_one_if_two_are_too_many(tmp_path: Path) -> None:
    _, records = made(failing(room=0), runs_on_digits(3), tmp_path, size=2)
    assert [record.extra for record in records] == [{"alone": 1}] * 3


def test_runs_are_made_one_by_one_if_they_cannot_be_one_program(tmp_path: Path) -> None:
    seen, records = made(failing(whole=RuntimeError("vmap: no rule")), runs_on_digits(3), tmp_path, size=2)
    assert [(record.error, record.extra) for record in records] == [(None, {"alone": 1})] * 3
    (note,) = seen.notes
    assert note.endswith("one by one, since runs together fail (RuntimeError: vmap: no rule)")


def test_a_process_that_dies_halves_its_batch_and_is_the_error_of_a_single_run(tmp_path: Path) -> None:
    seen, records = made(failing(), runs_on_digits(3), tmp_path, size=4, executor=DyingExecutor)
    assert seen.notes[0].endswith("3 runs together ended their process: half as many")
    died = "the run's process died: the machine may be short of memory"
    assert {record.seed: record.error for record in records} == {0: None, 1: died, 2: None}


@pytest.mark.parametrize("size", [1, 3])
def test_a_failing_run_leaves_its_error_and_the_others_go_on(size: int, tmp_path: Path) -> None:
    _, records = made(failing(broken=(1,)), runs_on_digits(3), tmp_path, size=size)
    assert [record.error is None for record in records] == [True, False, True]
    assert "nan" in str(records[1].error)
    assert records[1].result is None


def test_missing_data_are_an_error_of_every_run(tmp_path: Path) -> None:
    _, records = made(failing(whole=DataError("no files")), runs_on_digits(2), tmp_path / "a", size=2)
    assert [record.error for record in records] == ["no files"] * 2

    def refuse(*_: object, **__: object) -> Problem:
        raise OSError("disk\nfull")

    _, records = made(failing(load=refuse), runs_on_digits(2), tmp_path / "b", size=1)
    assert [record.error for record in records] == ["OSError: disk full"] * 2


def test_runs_with_a_result_are_not_repeated_and_failed_ones_are(tmp_path: Path) -> None:
    runs = runs_on_digits(3)
    made(failing(broken=(1,)), runs[:2], tmp_path, size=1)
    seen, records = made(failing(), runs, tmp_path, size=1)
    assert [record.split_seed for record in seen.ended] == [1, 2]
    assert len(records) == 4
    assert made(failing(), runs, tmp_path, size=1)[0].ended == []


def test_batch_sizes_depend_on_device_and_work() -> None:
    with pytest.raises(ValueError, match=r"`--together` needs at least 1; got 0"):
        batch_size(TRAIN, device="cpu", together=0)
    assert batch_size(TRAIN, device="cpu", together=None) == 1
    assert batch_size(TRAIN, device="cuda:1", together=None) == 25
    assert batch_size(TIME, device="cpu", together=4) == 1


def test_runs_together_are_shared_by_processes_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for threads, size, expected in ((4, 8, (4, 2)), (4, 4, (4, 1)), (4, 2, (2, 1)), (2, 25, (2, 2))):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        executor, batch = local_executor(TRAIN, device="cpu", size=size)
        assert isinstance(executor, Processes)
        assert (executor.size, batch) == expected
    for device in ("cpu", "cuda"):
        executor, batch = local_executor(TRAIN, device=device, size=25, processes=3)
        assert isinstance(executor, Processes)
        assert (executor.size, batch) == (3, 25)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    for device, size in (("cpu", 8), ("cuda", 25)):
        executor, batch = local_executor(TRAIN, device=device, size=size)
        assert isinstance(executor, Local)
        assert batch == size


@pytest.mark.slow
def test_processes_find_what_one_process_finds(tmp_path: Path) -> None:
    runs = runs_on_digits(2)
    _, here = made(TRAIN, runs, tmp_path / "here", size=1)
    with (
        RecordLog(tmp_path / "there.jsonl", resume=False) as log,
        Processes(BatchWorker(TRAIN, "cpu"), 2) as executor,
    ):
        run_study(executor, runs, log, batch_size=1, watch=Seen())
        there = sorted(log.records, key=lambda record: record.seed)
    for one, other in zip(here, there, strict=True):
        assert replace(one, result=None) == replace(other, result=None)
        assert one.number("test_accuracy") == other.number("test_accuracy")
        assert one.number("val_accuracy") == other.number("val_accuracy")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "measured"),
    [(COUNT, "parameters"), (TIME, "inference_seconds"), (FOLLOW, "along")],
    ids=["count", "time", "follow"],
)
def test_each_work_records_what_it_measures(work: Work, measured: str, tmp_path: Path) -> None:
    _, (record,) = made(work, runs_on_digits(1), tmp_path, size=4)
    assert record.error is None
    found = record.extra[measured]
    if measured == "along":
        assert record.result is not None
        assert [t for t, _ in found] == [2 * k / 8 for k in range(1, 25)]
        best = dict(map(tuple, found))[record.result["best_time"]]
        assert best == pytest.approx(record.result["val_accuracy"], abs=1e-4)
    else:
        assert found > 0
        assert (record.result is None) == (measured == "parameters")


@pytest.mark.parametrize("encoding", ["none", pytest.param("ppr", marks=pytest.mark.slow), "laplacian"])
def test_parameters_are_counted_without_computing_positions(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (run,) = runs_on_digits(1)
    channels = ["position.channels=7"] if encoding == "laplacian" else []
    config = override(run.config, [f"position.kind={encoding}", *channels])
    expected = count_parameters(load_problem(config).model(config).parameters())

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("positions were computed")

    monkeypatch.setattr(import_module("beltrami.precompute"), "cached_positions", refuse)
    found = COUNT.one(config, COUNT.load(config, device="cpu"), lambda number: None)
    assert found.extra["parameters"] == expected


@pytest.mark.parametrize("fails", [False, True], ids=["loaded", "failing to load"])
def test_a_problem_is_loaded_once_for_all_seeds(fails: bool, tmp_path: Path) -> None:
    loaded: list[float] = []

    def load(config: RunConfig, *, device: str) -> Problem:
        loaded.append(config.train.lr)
        if fails:
            raise OSError("disk full")
        return load_problem(config, device=device)

    runs = runs_on_digits(3)
    others = [PlannedRun(run.study, "other", override(run.config, ["train.lr=0.5"])) for run in runs]
    _, records = made(failing(load=load), [*runs, *others], tmp_path, size=1)
    assert loaded == [runs[0].config.train.lr, 0.5]
    assert [record.error for record in records] == [("OSError: disk full" if fails else None)] * 6


def test_a_batch_that_fails_late_does_not_make_batches_larger_again(tmp_path: Path) -> None:
    seen, records = made(failing(room=1), runs_on_digits(8), tmp_path, size=4, executor=LastFirst)
    assert [note.partition(": ")[2] for note in seen.notes] == [
        f"{n} runs together are too many for the memory: half as many" for n in (4, 2)
    ]
    assert sorted(record.split_seed for record in records) == list(range(8))
    assert [record.extra for record in records] == [{"alone": 1}] * 8


def found(run: PlannedRun, accuracy: float | None) -> Record:
    result = {"test_accuracy": accuracy, "split": {"hash": "h"}, "device": "cpu", "versions": {"torch": "2"}}
    return run.record("it broke" if accuracy is None else Outcome(result))


def test_equal_runs_of_another_study_are_copied_and_the_rest_is_left(tmp_path: Path) -> None:
    with RecordLog(tmp_path / "random.jsonl", resume=False) as other:
        for run, accuracy in zip(runs_on_digits(3, methods=["uniform"]), (80.0, None, 82.0), strict=True):
            other.append(found(run, accuracy))
    runs = runs_on_digits(4, "attention", ["uniform"])
    with RecordLog(tmp_path / "attention.jsonl", resume=False) as log:
        assert reuse(STUDIES["attention"], runs, log) == 2
        assert [(each.study, each.method, each.split_seed, each.number("test_accuracy")) for each in log.records] == [
            ("attention", "uniform", 0, 80.0),
            ("attention", "uniform", 2, 82.0),
        ]
        assert [run.config.seed for run in pending(runs, log)] == [1, 3]
        assert reuse(STUDIES["attention"], runs, log) == 0


def test_a_method_of_another_name_is_the_same_run_if_its_settings_are(tmp_path: Path) -> None:
    with RecordLog(tmp_path / "random.jsonl", resume=False) as other:
        other.append(found(runs_on_digits(1)[0], 90.0))
    runs = runs_on_digits(1, "positions", ["without", "ppr"])  # digits has no positions
    with RecordLog(tmp_path / "positions.jsonl", resume=False) as log:
        assert reuse(STUDIES["positions"], runs, log) == 1
        assert [record.method for record in log.records] == ["without"]


def test_records_of_a_study_with_other_work_are_not_copied(tmp_path: Path) -> None:
    runs = runs_on_digits(1)
    with RecordLog(tmp_path / "time.jsonl", resume=False) as other:
        other.append(replace(found(runs[0], 90.0), study="time"))
    with RecordLog(tmp_path / "random.jsonl", resume=False) as log:
        assert reuse(STUDIES["random"], runs, log) == 0
