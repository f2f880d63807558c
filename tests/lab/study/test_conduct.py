"""Runs are done once each, whatever fails on the way."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest
import torch
from watcher import Seen

from beltrami.config import RunConfig, override
from beltrami.errors import DataError, SolverError
from beltrami.lab.study import STUDIES, LocalExecutor, PlannedRun, Record, RecordLog, pending, plan, run_study
from beltrami.lab.study.batch import BatchQueue
from beltrami.lab.study.run_study import TOGETHER
from beltrami.lab.study.work import Count, Done, Follow, OnEpoch, Time, Work
from beltrami.run import Problem, load_problem
from beltrami.train import count_parameters

SHORT = ["train.epochs=2", "scheme.time=2", "scheme.kind=constant", "scheme.solver=rk4", "scheme.dt=1", "model.feat=8"]


class Fussy(Work):
    """Fails where it is told to, and does nothing else."""

    batches = True

    def __init__(self, *, room: int = 99, broken: tuple[int, ...] = (), whole: Exception | None = None) -> None:
        self.room, self.broken, self.whole = room, broken, whole

    def one(self, config: RunConfig, problem: Problem, *, on_epoch: OnEpoch) -> Done:
        assert problem.split.seed == config.data.split_seed
        if config.seed in self.broken:
            raise SolverError("the loss became nan")
        return Done(None, {"alone": 1})

    def many(self, configs: Sequence[RunConfig], *, device: str, on_epoch: OnEpoch) -> list[Done | SolverError]:
        if len(configs) > self.room:
            raise torch.OutOfMemoryError("out of memory")
        if self.whole is not None:
            raise self.whole
        return [SolverError("nan") if config.seed in self.broken else Done(None, {}) for config in configs]


def tasks_on_digits(splits: int, study: str = "random") -> list[PlannedRun]:
    return plan(STUDIES[study], datasets=["digits"], methods=["blend"], splits=splits, inits=1, settings=SHORT)


def done(work: Work, tasks: list[PlannedRun], path: Path, *, together: int) -> tuple[Seen, list[Record]]:
    seen = Seen()
    with RecordLog(path / "s.jsonl", resume=True) as ledger, LocalExecutor(work, "cpu") as place:
        run_study(place, pending(tasks, ledger), ledger, together=together, watch=seen)
        return seen, ledger.lines


def test_batches_are_of_the_size_asked_for(tmp_path: Path) -> None:
    seen, lines = done(Fussy(), tasks_on_digits(5), tmp_path, together=2)
    assert seen.sizes == [2, 2, 1]
    assert seen.ended == lines
    assert [line.split_seed for line in lines] == [0, 1, 2, 3, 4]


def test_a_batch_too_large_for_the_memory_is_halved(tmp_path: Path) -> None:
    seen, lines = done(Fussy(room=2), tasks_on_digits(5), tmp_path, together=5)
    assert seen.sizes == [5, 3, 2, 2, 1]
    assert [line.error for line in lines] == [None] * 5
    assert [line.split_seed for line in lines] == [0, 1, 2, 3, 4]
    assert seen.notes == [f"{n} runs together are too many for the memory: half as many" for n in (5, 3)]


def test_where_two_are_too_many_runs_are_done_one_by_one(tmp_path: Path) -> None:
    seen, lines = done(Fussy(room=0), tasks_on_digits(3), tmp_path, together=2)
    assert seen.sizes == [2, 1, 1, 1]
    assert [line.also for line in lines] == [{"alone": 1}] * 3


def test_what_is_no_program_is_done_one_by_one(tmp_path: Path) -> None:
    seen, lines = done(Fussy(whole=RuntimeError("vmap: no rule")), tasks_on_digits(3), tmp_path, together=2)
    assert [(line.error, line.also) for line in lines] == [(None, {"alone": 1})] * 3
    assert seen.notes == ["one by one, since runs together fail (RuntimeError: vmap: no rule)"]


def test_a_failing_run_leaves_its_error_and_the_others_go_on(tmp_path: Path) -> None:
    for together in (1, 3):
        _, lines = done(Fussy(broken=(1,)), tasks_on_digits(3), tmp_path / str(together), together=together)
        assert [line.error is None for line in lines] == [True, False, True]
        assert "nan" in str(lines[1].error)
        assert lines[1].result is None


def test_missing_data_are_an_error_of_every_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, lines = done(Fussy(whole=DataError("no files")), tasks_on_digits(2), tmp_path / "a", together=2)
    assert [line.error for line in lines] == ["no files"] * 2

    def refuse(*_: object, **__: object) -> Problem:
        raise OSError("disk\nfull")

    monkeypatch.setattr(Fussy, "pose", refuse)
    _, lines = done(Fussy(), tasks_on_digits(2), tmp_path / "b", together=1)
    assert [line.error for line in lines] == ["OSError: disk full"] * 2


def test_what_is_done_is_not_done_again_and_what_failed_is(tmp_path: Path) -> None:
    tasks = tasks_on_digits(3)
    done(Fussy(broken=(1,)), tasks[:2], tmp_path, together=1)
    seen, lines = done(Fussy(), tasks, tmp_path, together=1)
    assert [line.split_seed for line in seen.ended] == [1, 2]
    assert len(lines) == 4
    assert done(Fussy(), tasks, tmp_path, together=1)[0].ended == []


def test_batches_of_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"`--together` needs at least 1; got 0"):
        done(Fussy(), tasks_on_digits(1), tmp_path, together=0)


def test_default_batches_are_of_one_run_on_the_cpu() -> None:
    assert TOGETHER["cpu"] == 1 < TOGETHER["cuda"]


@pytest.mark.parametrize(
    ("work", "measured"),
    [(Count(), "parameters"), (Time(), "inference_seconds"), (Follow(), "along")],
    ids=["count", "time", "follow"],
)
def test_each_work_leaves_what_it_measures(work: Work, measured: str, tmp_path: Path) -> None:
    _, (line,) = done(work, tasks_on_digits(1), tmp_path, together=4)
    assert line.error is None
    found = line.also[measured]
    if measured == "along":
        assert line.result is not None
        times = [t for t, _ in found]
        assert times == [2 * k / 8 for k in range(1, 25)]
        best = dict(map(tuple, found))[line.result["best_time"]]
        assert best == pytest.approx(line.result["val_accuracy"], abs=1e-4)
    else:
        assert found > 0
        assert (line.result is None) == (measured == "parameters")


@pytest.mark.parametrize("encoding", ["none", "ppr", "heat", "laplacian", "walk"])
def test_parameters_are_counted_without_finding_positions(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (task,) = tasks_on_digits(1)
    settings = [f"position.kind={encoding}", "position.channels=7"]
    config = override(task.config, settings, skip_inapplicable=True)
    expected = count_parameters(load_problem(config).model(config).parameters())

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("positions were looked for")

    monkeypatch.setattr(import_module("beltrami.precompute"), "cached", refuse)
    work = Count()
    found = work.one(config, work.load_problem(config, device="cpu"), on_epoch=lambda number, going: None)
    assert found.also["parameters"] == expected


@pytest.mark.parametrize("fails", [False, True], ids=["posed", "not to be posed"])
def test_a_problem_is_posed_once_for_all_seeds(fails: bool, tmp_path: Path) -> None:
    class Costly(Fussy):
        posed: tuple[float, ...] = ()

        def load_problem(self, config: RunConfig, *, device: str) -> Problem:
            self.posed += (config.train.lr,)
            if fails:
                raise OSError("disk full")
            return super().load_problem(config, device=device)

    work, tasks = Costly(), tasks_on_digits(3)
    others = [PlannedRun(task.study, "other", override(task.config, ["train.lr=0.5"])) for task in tasks]
    _, lines = done(work, [*tasks, *others], tmp_path, together=1)
    assert work.posed == (tasks[0].config.train.lr, 0.5)
    assert [line.error for line in lines] == [("OSError: disk full" if fails else None)] * 6


def test_a_batch_that_ends_late_does_not_make_batches_larger_again() -> None:
    pile = BatchQueue(tasks_on_digits(5), 2)
    early, late = pile.cut(), pile.cut()
    pile.put_back(early)
    assert pile.shrink(1)
    pile.put_back(late)
    assert not pile.shrink(1)
    assert [task.config.data.split_seed for task in pile.tasks] == [2, 3, 0, 1, 4]
    assert [(len(batch.tasks), batch.together) for batch in (early, late, pile.cut())] == [(2, True)] * 2 + [(1, False)]
