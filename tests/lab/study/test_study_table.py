"""Tables come from lines alone."""

from dataclasses import replace
from statistics import stdev

import pytest
from study_lines import line

from beltrami.errors import DataError
from beltrami.lab.study import STUDIES, Record, Sample, tabulate
from beltrami.lab.study.paper import Figure

RANDOM = STUDIES["random"]


def test_a_cell_holds_mean_deviation_interval_count_and_the_papers_figure() -> None:
    values = [84.0, 85.0, 83.0]
    lines = [line(accuracy=a, dataset="cora", split_seed=s, seed=s) for s, a in enumerate(values)]
    (table,) = tabulate(RANDOM, [*lines, line(accuracy=None, dataset="cora", split_seed=3, seed=3)])
    cell = table.cells["blend", "cora"]
    assert (cell.runs, cell.failed, table.failed) == (3, 1, 1)
    assert cell.deviation == pytest.approx(stdev(values))
    assert cell.sample == Sample.of(values)
    assert cell.paper == Figure(84.8, 0.9)


def test_the_same_run_is_never_counted_twice() -> None:
    lines = [line(accuracy=a, split_seed=s, seed=s) for s, a in enumerate((84.0, 85.0))]
    assert tabulate(RANDOM, lines * 3) == tabulate(RANDOM, lines)
    (table,) = tabulate(RANDOM, [line(accuracy=None), line(accuracy=84.0)])
    assert (table.cells["blend", "digits"].runs, table.failed) == (1, 0)


def test_rows_and_datasets_stand_in_the_order_of_the_study() -> None:
    names = [("mine", "digits"), ("blend", "photo"), ("uniform", "cora"), ("blend", "citeseer")]
    (table,) = tabulate(RANDOM, [line(row, dataset=dataset) for row, dataset in names])
    assert table.rows == ("uniform", "blend", "mine")
    assert table.datasets == ("cora", "citeseer", "photo", "digits")


def test_pairs_are_compared_where_both_rows_are() -> None:
    lines = [line(row, a, dataset=data) for row, a, data in (("blend", 84.0, "cora"), ("uniform", 83.0, "cora"))]
    (table,) = tabulate(RANDOM, [*lines, line("blend", 90.0, dataset="photo")])
    assert [(pair.one, pair.other) for pair in table.pairs] == [("blend", "uniform")]
    (samples,) = table.pairs.values()
    assert samples == {"cora": Sample(1, 1.0, None)}


def test_a_cell_of_failures_alone_has_no_mean() -> None:
    (table,) = tabulate(RANDOM, [line(accuracy=None)])
    cell = table.cells["blend", "digits"]
    assert (cell.runs, cell.failed, cell.sample, cell.deviation) == (0, 1, None, None)


def test_runs_of_two_settings_have_no_mean() -> None:
    with pytest.raises(DataError, match=r"the runs of 'blend' on 'digits' in study 'random' have different settings"):
        tabulate(RANDOM, [line(setup="one", seed=0), line(setup="other", seed=1)])


def test_lines_of_another_study_are_refused() -> None:
    with pytest.raises(DataError, match=r"a line of study 'steps' is among those of 'random'"):
        tabulate(RANDOM, [line(study="steps")])


def test_times_of_two_devices_are_not_compared() -> None:
    def timed(row: str, device: str, seconds: float, seed: int) -> Record:
        plain = line(row, study="solvers", split_seed=seed, seed=seed)
        assert plain.result is not None
        return replace(plain, result={**plain.result, "device": device, "train_seconds": seconds})

    lines = [timed("euler", "gpu", 1.0, 0), timed("euler", "gpu", 3.0, 1)]
    lines += [timed("rk4", "gpu", 5.0, 0), timed("rk4", "cpu", 90.0, 1), timed("dopri5", "cpu", 80.0, 0)]
    accuracy, seconds, _ = tabulate(STUDIES["solvers"], lines)
    assert {row: cell.runs for (row, _), cell in accuracy.cells.items()} == {"euler": 2, "rk4": 2, "dopri5": 1}
    means = {row: cell.sample and cell.sample.mean for (row, _), cell in seconds.cells.items()}
    assert means == {"euler": 2.0, "rk4": 5.0}  # and dopri5, of which there is no time on a GPU, has none
