"""Means and intervals are Student's, over what is independent."""

import math

import numpy as np
import pytest
from scipy import stats
from study_lines import line

from beltrami.lab.study import Comparison, Sample, ratio
from beltrami.lab.study.sample import by_unit, quantile

VALUES = [83.1, 84.0, 82.5, 85.2, 83.9, 84.4, 81.8]


def test_quantiles_are_those_of_the_printed_table() -> None:
    for freedom, printed in ((1, 12.706), (4, 2.776), (9, 2.262), (99, 1.984)):
        assert quantile(freedom) == pytest.approx(printed, abs=5e-4)


def test_interval_is_that_of_the_one_sample_test() -> None:
    sample = Sample.of(VALUES)
    expected = stats.ttest_1samp(VALUES, 0.0).confidence_interval(0.95)
    assert sample.interval == pytest.approx((expected.low, expected.high))
    assert sample.count == 7
    assert sample.mean == pytest.approx(float(np.mean(VALUES)))


def test_the_interval_covers_the_mean_as_often_as_it_says() -> None:
    draws = np.random.default_rng(0).normal(80.0, 2.0, size=(2000, 5))
    covered = np.mean([abs(sample.mean - 80.0) <= (sample.half or 0) for sample in map(Sample.of, draws.tolist())])
    assert covered == pytest.approx(0.95, abs=3 * math.sqrt(0.95 * 0.05 / 2000))


def test_one_value_has_no_interval_and_none_no_mean() -> None:
    assert Sample.of([3.0]) == Sample(1, 3.0, None)
    assert Sample.of([3.0]).interval is None
    with pytest.raises(ValueError, match=r"Sample needs at least one value"):
        Sample.of([])


def test_runs_of_one_split_are_one_value_among_several_splits() -> None:
    lines = [line(accuracy=a, split_seed=s, seed=i) for s, i, a in ((0, 0, 80.0), (0, 1, 82.0), (1, 1, 70.0))]
    assert by_unit(lines, "test_accuracy") == {"hash 0": 81.0, "hash 1": 70.0}
    assert by_unit(lines[:2], "test_accuracy") == {"0": 80.0, "1": 82.0}


def test_a_pair_is_the_paired_test_on_common_splits() -> None:
    random = np.random.default_rng(1)
    one, other = random.normal(84, 1, size=8), random.normal(83, 1, size=8)
    lines = [line("blend", float(a), split_seed=s, seed=s) for s, a in enumerate(one)]
    lines += [line("uniform", float(a), split_seed=s, seed=s) for s, a in enumerate(other)]
    lines += [line("blend", 0.0, split_seed=99), line("uniform", None, split_seed=98), line("gcn", 1.0)]
    sample = Comparison("blend", "uniform").sample(lines, "test_accuracy")
    expected = stats.ttest_rel(one, other).confidence_interval(0.95)
    assert sample is not None
    assert sample.count == 8
    assert sample.interval == pytest.approx((expected.low, expected.high))


def test_a_pair_compares_only_runs_that_both_rows_have() -> None:
    lines = [line("blend", a, seed=i) for i, a in enumerate((80.0, 90.0))] + [line("uniform", 79.0, seed=0)]
    assert Comparison("blend", "uniform").sample(lines, "test_accuracy") == Sample(1, 1.0, None)
    several = [line("blend", a, split_seed=s, seed=i) for s, i, a in ((0, 0, 80.0), (0, 1, 99.0), (1, 1, 82.0))]
    several += [line("uniform", a, split_seed=s, seed=i) for s, i, a in ((0, 0, 79.0), (1, 1, 79.0))]
    assert Comparison("blend", "uniform").sample(several, "test_accuracy") == Sample.of([1.0, 3.0])


def test_ratios_are_ratios_and_strangers_are_not_compared() -> None:
    lines = [line("blend", 80.0), line("gat", 40.0)]
    assert Comparison("blend", "gat", ratio).sample(lines, "test_accuracy") == Sample(1, 2.0, None)
    assert Comparison("blend", "gcn").sample(lines, "test_accuracy") is None
