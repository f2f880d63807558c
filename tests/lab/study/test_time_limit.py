"""A time limit starts what can end in time by the durations on record."""

from dataclasses import replace
from pathlib import Path

import pytest
from study_records import Seen, a_record

from beltrami.config import RunConfig
from beltrami.lab.executor import Local, OnEpoch
from beltrami.lab.study.planning import PlannedRun, plan
from beltrami.lab.study.record import Record, RecordLog
from beltrami.lab.study.runner import BatchWorker, run_study
from beltrami.lab.study.studies import STUDIES
from beltrami.lab.study.time_limit import MARGIN, TimeLimit
from beltrami.lab.study.work import Outcome, Work
from beltrami.run import Problem


class Clock:
    """A clock that stands still unless it is told to go on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def runs(method: str = "blend", splits: int = 2) -> list[PlannedRun]:
    return plan(STUDIES["random"], datasets=["digits"], methods=[method], splits=splits, settings=["train.epochs=1"])


def timed(method: str, seconds: float, device: str = "cpu") -> Record:
    record = a_record(method)
    return replace(record, result={**(record.result or {}), "train_seconds": seconds, "device": device})


def test_a_duration_is_that_of_the_cell_or_the_longest_of_its_study_on_the_same_device() -> None:
    records = [timed("blend", 3.0), timed("blend", 5.0), timed("gat", 9.0), a_record("gcn", None)]
    gpu = timed("blend", 100.0, device="H200")
    limit = TimeLimit(60, [*records, gpu], device="cpu")
    assert limit.expected(runs()) == pytest.approx(MARGIN * 2 * 4.0)
    assert limit.expected(runs("uniform")) == pytest.approx(MARGIN * 2 * 9.0)
    assert TimeLimit(60, [*records, gpu], device="cuda").expected(runs()) == pytest.approx(MARGIN * 200.0)
    assert TimeLimit(60, [], device="cpu").expected(runs()) is None
    others = [replace(record, study="attention") for record in records]
    assert TimeLimit(60, others, device="cpu").expected(runs()) == pytest.approx(MARGIN * 2 * (4.0 + 9.0) / 2)
    counts = replace(a_record("blend"), result=None, extra={"parameters": 3})  # a study that takes no time on record
    assert TimeLimit(60, [*others, counts], device="cpu").expected(runs()) is None


def test_a_batch_starts_only_if_it_can_end_in_time() -> None:
    clock = Clock()
    limit = TimeLimit(30, [timed("blend", 10.0)], device="cpu", clock=clock)
    assert limit.allows(runs())
    assert not limit.allows(runs(splits=3))
    clock.now = 10
    assert not limit.allows(runs())
    unknown = TimeLimit(30, [], device="cpu", clock=clock)
    assert unknown.allows(runs())
    clock.now = 41
    assert not unknown.allows(runs())


def test_a_batch_that_has_ended_says_how_long_the_next_will_take() -> None:
    clock = Clock()
    limit = TimeLimit(100, [timed("blend", 1.0)], device="cpu", clock=clock)
    limit.begin(runs())
    clock.now = 40
    limit.end(runs())
    assert limit.expected(runs()) == pytest.approx(MARGIN * 40)
    assert limit.left == 60


@pytest.mark.slow
def test_a_study_leaves_out_what_has_no_time_and_goes_on_with_the_rest(tmp_path: Path) -> None:
    clock = Clock()

    def one(config: RunConfig, problem: Problem, on_epoch: OnEpoch) -> Outcome:
        clock.now += 20 if config.recipe == "blend" else 1
        return Outcome(None)

    limit = TimeLimit(50, [timed("blend", 10.0), timed("uniform", 1.0)], device="cpu", clock=clock)
    seen, both = Seen(), [*runs("blend", 4), *runs("uniform", 3)]
    with RecordLog(tmp_path / "s.jsonl", resume=False) as log, Local(BatchWorker(Work(one), "cpu")) as executor:
        run_study(executor, both, log, batch_size=1, watch=seen, limit=limit)
        made = [record.method for record in log.records]
    assert made == ["blend", "blend", "uniform", "uniform", "uniform"]  # a third blend would end after 60
    assert seen.notes == ["random: the time left is too short for 2 runs"]


@pytest.mark.parametrize("hours", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_that_is_not_positive_is_refused(hours: float) -> None:
    with pytest.raises(ValueError, match=r"`--hours` must be above 0"):
        TimeLimit(3600 * hours, [], device="cpu")
