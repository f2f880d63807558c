"""The page that compares runs: differences, equal splits, settings and nodes against loops."""

from dataclasses import replace

import numpy
import pytest
from page_reader import Page, csv_files
from run_data_examples import NASTY, class_run, label_run, number_run

from beltrami.report.compare import (
    compare_figures,
    compare_page,
    different_settings,
    disagreements,
    run_names,
    same_split,
)
from beltrami.report.run_data import RunData

ONE = class_run()
OTHER = replace(class_run(seed=1), nodes=replace(ONE.nodes, predicted=(ONE.nodes.predicted + numpy.arange(60) % 2) % 3))


def test_scores_stand_side_by_side_with_their_differences() -> None:
    head, first, second = csv_files(compare_page([ONE, OTHER]))["scores.csv"]
    rows = [dict(zip(head, row, strict=True)) for row in (first, second)]
    assert [row["test, %"] for row in rows] == ["80.0", "81.0"]
    assert first[head.index("test difference")] == ""
    assert float(second[head.index("test difference")]) == pytest.approx(1.0)
    assert [row["same split"] for row in rows] == ["first run", "yes"]
    test = [k for k in range(60) if ONE.nodes.part[k] == 3]
    lost = sum(ONE.nodes.predicted[k] == ONE.nodes.label[k] != OTHER.nodes.predicted[k] for k in test)
    won = sum(OTHER.nodes.predicted[k] == OTHER.nodes.label[k] != ONE.nodes.predicted[k] for k in test)
    assert [int(rows[1]["right in this run only"]), int(rows[1]["right in the first run only"])] == [won, lost]


def test_another_split_is_said() -> None:
    moved = replace(ONE, nodes=replace(ONE.nodes, part=numpy.roll(ONE.nodes.part, 1)))
    assert same_split(ONE, OTHER)
    assert not same_split(ONE, moved)
    assert "not trained and tested on the same split" in compare_page([ONE, moved])
    assert "not trained and tested on the same split" not in compare_page([ONE, OTHER])


def test_settings_that_differ_are_found_by_dotted_name() -> None:
    other = replace(ONE, settings={"scheme": {"solver": {"kind": "euler"}, "time": 4.0}, "seed": 0, "new": 1})
    found = different_settings([ONE, other])
    assert found["scheme.solver.kind"] == ["dopri5", "euler"]
    assert found["new"] == [None, 1]
    assert not {"scheme.time", "seed"} & set(found)


def test_nodes_on_which_runs_disagree_are_listed_and_named_as_text() -> None:
    assert sorted(disagreements([ONE, OTHER]).tolist()) == list(range(1, 60, 2))
    page = compare_page([ONE, OTHER])
    assert "30 of 30 nodes with different predictions" in page
    assert "All runs predict the same" in compare_page([ONE, ONE])
    assert any(NASTY[0] in text for text in Page(page).texts)
    assert len([tag for tag, _ in Page(page).elements if tag == "script"]) == 2


def test_names_of_runs_classes_and_nodes_are_text_and_no_formulas_in_csv() -> None:
    runs = [replace(ONE, title="=cmd()"), replace(OTHER, title='"a"\n<b>\'')]
    page = compare_page(runs)
    elements = [tag for tag, _ in Page(page).elements]
    assert elements.count("script") == 2
    assert not {"b", "img", "iframe"} & set(elements)
    files = csv_files(page)
    assert {"scores.csv", "loss.csv", "disagreements.csv", "facts.csv"} <= set(files)
    fields = {field for rows in files.values() for row in rows for field in row}
    assert {"'=cmd()", '"a"\n<b>\'', NASTY[0], "'=1+1"} <= fields
    assert not [each for each in fields if each.startswith(("=", "+", "@", "\t", "\r", "\n"))]
    assert all(float(each) < 0 for each in fields if each.startswith("-"))


def test_curves_of_all_runs_are_in_common_axes() -> None:
    figures = {figure.key: figure for figure in compare_figures([ONE, OTHER])}
    assert list(figures) == ["loss", "validation", "validation-time", "test-time"]
    assert all([line.name for line in figure.series] == run_names([ONE, OTHER]) for figure in figures.values())
    assert len(set(run_names([ONE, ONE, replace(ONE, folder="b")]))) == 3


@pytest.mark.parametrize("run", [label_run(), number_run()], ids=lambda run: run.kind)
def test_labels_and_numbers_are_compared(run: RunData) -> None:
    page = compare_page([run, replace(run, folder="other")])
    assert "runs/&lt;b&gt;graph" in page


def test_fewer_than_two_runs_and_different_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match="at least two runs; got 1"):
        compare_page([ONE])
    with pytest.raises(ValueError, match="classes and numbers cannot be compared"):
        compare_page([ONE, number_run()])


def test_runs_on_different_graphs_are_compared_without_nodes() -> None:
    page = compare_page([class_run(n=60), class_run(n=70)])
    assert "different nodes or classes" in page
