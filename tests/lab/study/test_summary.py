"""Tables come from records alone; means and intervals are Student's, over independent values."""

import math
from dataclasses import replace
from operator import truediv
from statistics import stdev

import numpy as np
import pytest
from scipy import stats
from study_records import a_record

from beltrami.errors import DataError
from beltrami.lab.study.paper_tables import PrintedNumber
from beltrami.lab.study.planning import Comparison
from beltrami.lab.study.record import Record
from beltrami.lab.study.studies import STUDIES
from beltrami.lab.study.summary import Sample, compare, independent_values, tabulate

RANDOM = STUDIES["random"]
VALUES = [83.1, 84.0, 82.5, 85.2, 83.9, 84.4, 81.8]


def test_a_cell_holds_mean_deviation_interval_count_and_the_papers_figure() -> None:
    values = [84.0, 85.0, 83.0]
    records = [a_record(accuracy=a, dataset="cora", split_seed=s, seed=s) for s, a in enumerate(values)]
    (table,) = tabulate(RANDOM, [*records, a_record(accuracy=None, dataset="cora", split_seed=3, seed=3)])
    cell = table.cells["blend", "cora"]
    assert (cell.runs, cell.failed) == (3, 1)
    assert cell.deviation == pytest.approx(stdev(values))
    assert cell.sample == Sample.of(values)
    assert cell.paper == PrintedNumber(84.8, 0.9)


def test_the_same_run_is_never_counted_twice() -> None:
    records = [a_record(accuracy=a, split_seed=s, seed=s) for s, a in enumerate((84.0, 85.0))]
    assert tabulate(RANDOM, records * 3) == tabulate(RANDOM, records)
    (table,) = tabulate(RANDOM, [a_record(accuracy=None), a_record(accuracy=84.0)])
    assert (table.cells["blend", "digits"].runs, table.cells["blend", "digits"].failed) == (1, 0)


def test_methods_and_datasets_are_in_the_order_of_the_study() -> None:
    names = [("mine", "digits"), ("blend", "photo"), ("uniform", "cora"), ("blend", "citeseer")]
    (table,) = tabulate(RANDOM, [a_record(row, dataset=dataset) for row, dataset in names])
    assert table.methods == ("uniform", "blend", "mine")
    assert table.datasets == ("cora", "citeseer", "photo", "digits")


def test_methods_are_compared_on_datasets_that_both_have() -> None:
    records = [a_record(row, a, dataset=data) for row, a, data in (("blend", 84.0, "cora"), ("uniform", 83.0, "cora"))]
    (table,) = tabulate(RANDOM, [*records, a_record("blend", 90.0, dataset="photo")])
    assert [(pair.one, pair.other) for pair in table.comparisons] == [("blend", "uniform")]
    (samples,) = table.comparisons.values()
    assert samples == {"cora": Sample(1, 1.0, None)}


def test_a_cell_with_only_failures_has_no_mean() -> None:
    (table,) = tabulate(RANDOM, [a_record(accuracy=None)])
    cell = table.cells["blend", "digits"]
    assert (cell.runs, cell.failed, cell.sample, cell.deviation) == (0, 1, None, None)


def test_runs_of_two_settings_have_no_mean() -> None:
    with pytest.raises(DataError, match=r"the runs of 'blend' on 'digits' in study 'random' have different settings"):
        tabulate(RANDOM, [a_record(setup="one", seed=0), a_record(setup="other", seed=1)])


def test_records_of_another_study_are_refused() -> None:
    with pytest.raises(DataError, match=r"a record of study 'steps' is among those of 'random'"):
        tabulate(RANDOM, [a_record(study="steps")])


def test_times_of_two_devices_are_not_compared() -> None:
    def timed(row: str, device: str, seconds: float, seed: int) -> Record:
        plain = a_record(row, study="solvers", split_seed=seed, seed=seed)
        assert plain.result is not None
        return replace(plain, result={**plain.result, "device": device, "train_seconds": seconds})

    records = [timed("euler", "gpu", 1.0, 0), timed("euler", "gpu", 3.0, 1)]
    records += [timed("rk4", "gpu", 5.0, 0), timed("rk4", "cpu", 90.0, 1), timed("dopri5", "cpu", 80.0, 0)]
    accuracy, seconds, _ = tabulate(STUDIES["solvers"], records)
    assert {row: cell.runs for (row, _), cell in accuracy.cells.items()} == {"euler": 2, "rk4": 2, "dopri5": 1}
    means = {row: cell.sample and cell.sample.mean for (row, _), cell in seconds.cells.items()}
    assert means == {"euler": 2.0, "rk4": 5.0}  # and dopri5, of which there is no time on a GPU, has none


def test_quantiles_are_those_of_the_printed_table() -> None:
    for freedom, printed in ((1, 12.706), (4, 2.776), (9, 2.262), (99, 1.984)):
        sample = Sample.of([float(value) for value in range(freedom + 1)])
        assert sample.half is not None
        spread = stdev(range(freedom + 1)) / (freedom + 1) ** 0.5
        assert sample.half / spread == pytest.approx(printed, abs=5e-4)


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
    records = [a_record(accuracy=a, split_seed=s, seed=i) for s, i, a in ((0, 0, 80.0), (0, 1, 82.0), (1, 1, 70.0))]
    assert independent_values(records, "test_accuracy") == {"hash 0": 81.0, "hash 1": 70.0}
    assert independent_values(records[:2], "test_accuracy") == {"0": 80.0, "1": 82.0}


def test_a_comparison_is_the_paired_t_test_on_common_splits() -> None:
    random = np.random.default_rng(1)
    one, other = random.normal(84, 1, size=8), random.normal(83, 1, size=8)
    records = [a_record("blend", float(a), split_seed=s, seed=s) for s, a in enumerate(one)]
    records += [a_record("uniform", float(a), split_seed=s, seed=s) for s, a in enumerate(other)]
    records += [a_record("blend", 0.0, split_seed=99), a_record("uniform", None, split_seed=98), a_record("gcn", 1.0)]
    sample = compare(Comparison("blend", "uniform"), records, "test_accuracy")
    expected = stats.ttest_rel(one, other).confidence_interval(0.95)
    assert sample is not None
    assert sample.count == 8
    assert sample.interval == pytest.approx((expected.low, expected.high))
    assert sample.p_value == pytest.approx(float(stats.ttest_rel(one, other).pvalue))


def test_equal_differences_are_certain_and_single_ones_have_no_test() -> None:
    assert Sample.of([1.0, 1.0]).p_value == 0.0
    assert Sample.of([0.0, 0.0, 0.0]).p_value == 1.0
    assert Sample.of([2.0]).p_value is None


def test_differences_of_a_table_are_adjusted_together_and_ratios_are_not_tested() -> None:
    values = {"blend": (84.0, 85.0, 84.5), "uniform": (83.0, 84.5, 84.1), "gcn": (80.0, 82.0, 81.7)}
    records = [a_record(row, a, split_seed=s, seed=s) for row, each in values.items() for s, a in enumerate(each)]
    (table,) = tabulate(RANDOM, records)
    alone = {pair: samples["digits"].p_value for pair, samples in table.comparisons.items()}
    assert {(pair.one, pair.other) for pair in alone} == {("blend", "uniform"), ("blend", "gcn")}
    low, high = sorted(p for p in alone.values() if p is not None)
    assert sorted(table.p_values.values()) == pytest.approx(sorted([2 * low, max(2 * low, high)]))
    timed = [replace(record, study="runtime", extra={"inference_seconds": 2.0}) for record in records]
    assert all(not table.p_values for table in tabulate(STUDIES["runtime"], timed))


def test_only_runs_that_both_methods_have_are_compared() -> None:
    records = [a_record("blend", a, seed=i) for i, a in enumerate((80.0, 90.0))] + [a_record("uniform", 79.0, seed=0)]
    assert compare(Comparison("blend", "uniform"), records, "test_accuracy") == Sample(1, 1.0, None)
    several = [a_record("blend", a, split_seed=s, seed=i) for s, i, a in ((0, 0, 80.0), (0, 1, 99.0), (1, 1, 82.0))]
    several += [a_record("uniform", a, split_seed=s, seed=i) for s, i, a in ((0, 0, 79.0), (1, 1, 79.0))]
    assert compare(Comparison("blend", "uniform"), several, "test_accuracy") == Sample.of([1.0, 3.0])


def test_ratios_are_compared_and_methods_without_common_runs_are_not() -> None:
    records = [a_record("blend", 80.0), a_record("gat", 40.0)]
    assert compare(Comparison("blend", "gat", truediv), records, "test_accuracy") == Sample(1, 2.0, None)
    assert compare(Comparison("blend", "gcn"), records, "test_accuracy") is None
