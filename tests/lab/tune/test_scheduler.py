"""Weak trials stop at milestones, and every trial leaves one record however it ends."""

from collections.abc import Generator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from study_records import Seen

from beltrami.config import override
from beltrami.lab.executor import Finished, JobReport, Local, OnEpoch
from beltrami.lab.study.record import Record, RecordLog, read_records
from beltrami.lab.tune.scheduler import Rungs, TrialWorker, run_search
from beltrami.lab.tune.search import TrialProgress, search_for

SEARCH = search_for("digits", "blend", splits=1, settings=["train.epochs=25"])


class LevelWorker:
    """Runs trials whose validation is a constant each; one that is None fails after its first milestone."""

    def __init__(self, levels: dict[int, float | None]) -> None:
        self.levels = levels

    def run(self, job: int, on_epoch: OnEpoch) -> Generator[JobReport | Finished, None, None]:
        level = self.levels[job]
        for epoch in (10, 20):
            yield JobReport(TrialProgress((level or 99.0,) * epoch, epoch / 10))
            if level is None:
                yield Finished("the loss became nan", clean=False)
        yield Finished(TrialProgress((level or 0.0,) * 25, 2.5, level))


def searched(path: Path, levels: dict[int, float | None], seen: Seen | None = None) -> list[Record]:
    with RecordLog(path, resume=True) as log, Local(LevelWorker(levels)) as executor:
        run_search(executor, SEARCH, list(levels), log, watch=seen or Seen())
    return read_records(path)


def brief(record: Record) -> tuple[str, int, bool, str | None]:
    return record.method, len(record.extra["by_epoch"]), record.extra["stopped"], record.error


def test_weak_trials_are_stopped_at_milestones_and_strong_ones_reach_their_end(tmp_path: Path) -> None:
    seen = Seen()
    records = searched(tmp_path / "t.jsonl", dict(enumerate((80.0, 70.0, 90.0, 85.0, 75.0))), seen)
    # at epoch 10: 80 is first; 70 < 80; 90 >= 75; 85 >= 80; 75 < 82.5. At 20: 80; 90 >= 80; 85 >= 85
    assert [brief(record) for record in records] == [
        ("0", 25, False, None),
        ("1", 10, True, None),
        ("2", 25, False, None),
        ("3", 25, False, None),
        ("4", 10, True, None),
    ]
    assert seen.ended == records
    assert [record.number("validation") for record in records] == [80.0, 70.0, 90.0, 85.0, 75.0]
    assert (seen.states[0], seen.states[-1]) == ("1 running", "1 running, best 90.00% (trial 2)")


def test_a_search_in_pieces_decides_like_one_without_interruption(tmp_path: Path) -> None:
    levels: dict[int, float | None] = dict(enumerate((80.0, 70.0, 90.0, 75.0)))
    searched(tmp_path / "pieces", {0: 80.0, 1: 70.0})
    pieces = searched(tmp_path / "pieces", {2: 90.0, 3: 75.0})
    assert pieces == searched(tmp_path / "whole", levels)


def test_trials_that_fail_or_die_leave_their_error_and_do_not_count_later(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    assert brief(searched(path, {0: None})[0]) == ("0", 10, False, "the loss became nan")

    class Dying(Local):
        def wait(self, *given: Any) -> tuple[Any, Finished | None]:
            return self._running.pop(), None

    with RecordLog(path, resume=True) as log, Dying(LevelWorker({1: 1.0})) as executor:
        run_search(executor, SEARCH, [1], log, watch=Seen())
        died = "the trial's process died: the machine may be short of memory"
        assert brief(log.records[-1]) == ("1", 0, False, died)
    assert brief(searched(path, {0: 50.0})[-1]) == ("0", 25, False, None)  # though it had 99 before it failed


@pytest.mark.parametrize(
    "settings", [pytest.param([], marks=pytest.mark.slow), ["train.lr=1e20"]], ids=["fine", "diverging"]
)
def test_a_worker_reports_milestones_and_the_end_or_its_error(settings: list[str]) -> None:
    short = [
        "train.epochs=15",
        "scheme.kind=constant",
        "scheme.solver=rk4",
        "scheme.dt=1",
        "scheme.time=2",
        "model.feat=8",
        *settings,
    ]
    search = search_for("digits", "blend", splits=1, settings=short)
    *reports, last = TrialWorker(search, "cpu").run(0, lambda number: None)
    assert isinstance(last, Finished)
    if settings:
        assert (reports, last.clean) == ([], False)
        assert "Traceback" not in last.value
    else:
        assert [report.value.epochs for report in reports] == [10]
        assert (last.value.epochs, last.value.final is None) == (15, False)


def test_milestones_are_the_papers_and_none_is_the_last_epoch() -> None:
    for epochs, expected in ((45, [10, 20, 30, 40]), (40, [10, 20, 30]), (10, [])):
        base = override(SEARCH.base, [f"train.epochs={epochs}"])
        assert list(replace(SEARCH, base=base).milestones) == expected


def test_a_trial_goes_on_if_it_is_not_below_the_median_of_those_before_it() -> None:
    random, rungs = Random(0), Rungs()
    before: list[float] = []
    for _ in range(200):
        value = float(random.randrange(40))  # with ties
        ranked = sorted(before)
        middle = (ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2]) / 2 if ranked else value
        assert rungs.climb(10, value) == (value >= middle)
        before.append(value)


def test_half_of_the_trials_are_left_after_every_half_life() -> None:
    random, rungs, left = Random(1), Rungs(), [2000]
    for epoch in (10, 20, 30, 40):
        left.append(sum(rungs.climb(epoch, random.random()) for _ in range(left[-1])))
    assert [after / before for before, after in pairwise(left)] == pytest.approx([0.5] * 4, abs=0.06)


def test_trials_of_the_past_count_as_if_they_had_just_climbed() -> None:
    random, milestones = Random(2), (10, 20, 30, 40)
    curves = [sorted(random.random() for _ in range(length)) for length in (10, 9, 25, 44, 31, 10)]
    live, resumed = Rungs(), Rungs()
    for curve in curves:
        for epoch in milestones:
            if epoch <= len(curve):
                live.climb(epoch, curve[epoch - 1])
        resumed.remember(curve, milestones)
    for epoch in milestones:
        for _ in range(20):
            value = random.random()
            assert live.climb(epoch, value) == resumed.climb(epoch, value)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_decisions_are_those_of_rays_asynchronous_hyperband() -> None:
    """With its own milestones, 10, 20, 40 and 80 at a reduction by two."""
    schedulers = pytest.importorskip("ray.tune.schedulers")
    theirs = schedulers.AsyncHyperBandScheduler(
        time_attr="epoch", metric="v", mode="max", max_t=100, grace_period=10, reduction_factor=2
    )
    ours, random = Rungs(), Random(3)
    for number in range(300):
        trial = SimpleNamespace(trial_id=str(number))
        theirs.on_trial_add(None, trial)
        for epoch in (10, 20, 40, 80):
            value = random.random()
            said = theirs.on_trial_result(None, trial, {"epoch": epoch, "v": value})
            assert ours.climb(epoch, value) == (said == "CONTINUE")
            if said != "CONTINUE":
                break
