"""Half of the trials go on at every milestone, as the rule says and as Ray's own scheduler has it."""

from itertools import pairwise
from random import Random
from types import SimpleNamespace

import pytest

from beltrami.lab.tune import Halving, Rungs


def test_milestones_are_the_papers_and_none_is_the_last_epoch() -> None:
    assert list(Halving().milestones(45)) == [10, 20, 30, 40]
    assert list(Halving().milestones(40)) == [10, 20, 30]
    assert list(Halving(grace=3, half_life=5).milestones(14)) == [3, 8, 13]
    assert list(Halving().milestones(10)) == []


def test_a_trial_goes_on_where_it_is_not_below_the_median_of_those_before_it() -> None:
    random, rungs = Random(0), Rungs()
    before: list[float] = []
    for _ in range(200):
        value = float(random.randrange(40))  # with ties
        ranked = sorted(before)
        middle = (ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2]) / 2 if ranked else value
        assert rungs.climb(10, value) == (value >= middle)
        before.append(value)


def test_half_of_the_trials_are_left_after_every_half_life() -> None:
    random, rungs, left = Random(1), Rungs(), [4000]
    for epoch in Halving().milestones(50):
        left.append(sum(rungs.climb(epoch, random.random()) for _ in range(left[-1])))
    assert [after / before for before, after in pairwise(left)] == pytest.approx([0.5] * 4, abs=0.06)


def test_trials_of_the_past_count_as_if_they_had_just_climbed() -> None:
    random, milestones = Random(2), Halving().milestones(45)
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


def test_halving_without_epochs_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Halving needs `grace` and `half_life` of at least 1; got 0, 10"):
        Halving(grace=0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_decisions_are_those_of_rays_asynchronous_hyperband() -> None:
    """Where the milestones are its own, 10, 20, 40 and 80 at a reduction by two."""
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
