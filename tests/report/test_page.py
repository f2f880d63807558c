"""The page of a run: numbers against loops, names as text, CSV without formulas, one file without requests."""

import csv
import io
import re
from dataclasses import replace
from itertools import pairwise

import numpy
import pytest
from page_reader import Page, csv_files
from run_data_examples import NASTY, class_run, label_run, number_run, with_flow

from beltrami.report.class_scores import class_scores, confusion, covered, judged_nodes, reliability
from beltrami.report.figure import Bars, Figure, Line
from beltrami.report.figure_table import csv_field, figure_csv
from beltrami.report.markup import json_block, nested_table, table
from beltrami.report.node_tables import node_prediction
from beltrami.report.page import report_page
from beltrami.report.page_shell import asset, html_page
from beltrami.report.run_data import PARTS, RunData
from beltrami.report.run_figures import run_figures
from beltrami.report.viewer import viewer_css, viewer_js

RUNS = (class_run(), label_run(), number_run())
each_run = pytest.mark.parametrize("run", RUNS, ids=lambda run: run.kind)


@each_run
def test_confusion_and_class_scores_are_those_of_loops(run: RunData) -> None:
    if run.kind == "numbers":
        return
    in_test = [k for k, part in enumerate(run.nodes.part) if PARTS[part] == "test"]
    nodes = [k for k in in_test if numpy.min(run.nodes.label[k]) >= 0]
    assert judged_nodes(run)[1].tolist() == nodes
    label, predicted = run.nodes.label, run.nodes.predicted
    if run.kind == "classes":
        table_ = confusion(run, numpy.array(nodes))
        for i in range(3):
            for j in range(3):
                assert table_[i, j] == sum(label[k] == i and predicted[k] == j for k in nodes)
    for c, found in enumerate(class_scores(run, numpy.array(nodes))):
        has = [bool(label[k][c]) if run.kind == "labels" else label[k] == c for k in nodes]
        said = [bool(predicted[k][c]) if run.kind == "labels" else predicted[k] == c for k in nodes]
        both = sum(a and b for a, b in zip(has, said, strict=True))
        assert (found.count, found.predicted) == (sum(has), sum(said))
        assert found.precision == pytest.approx(both / sum(said))
        assert found.recall == pytest.approx(both / sum(has))
        assert found.f1 == pytest.approx(2 * found.precision * found.recall / (found.precision + found.recall))


def test_reliability_is_that_of_a_loop() -> None:
    run = RUNS[0]
    _, nodes = judged_nodes(run)
    assert run.nodes.probabilities is not None
    sure = [float(p.max()) for p in run.nodes.probabilities]
    found, error = reliability(run, nodes), 0.0
    assert len(found.counts) == 15
    for b in range(15):
        inside = [k for k in nodes if b / 15 <= sure[k] < (b + 1) / 15]
        assert found.counts[b] == len(inside)
        if inside:
            right = sum(run.nodes.label[k] == run.nodes.predicted[k] for k in inside) / len(inside)
            mean = sum(sure[k] for k in inside) / len(inside)
            assert (found.accuracy[b], found.confidence[b]) == pytest.approx((right, mean))
            error += len(inside) / len(nodes) * abs(right - mean)
    assert found.error == pytest.approx(error)


@each_run
def test_coverage_is_that_of_a_loop(run: RunData) -> None:
    _, nodes = judged_nodes(run)
    for k, found in zip(nodes, covered(run, nodes), strict=True):
        label, sets, interval = run.nodes.label[k], run.nodes.sets, run.nodes.interval
        if interval is not None:
            assert found == (interval[k][0] <= label <= interval[k][1])
        elif sets is not None and run.kind == "labels":
            assert found == all(sets[k][c] for c in range(3) if label[c])
        elif sets is not None:
            assert found == sets[k][label]


def test_nodes_that_no_label_reaches_are_not_judged() -> None:
    run = RUNS[0]
    reached = numpy.arange(len(run.nodes.ids)) % 2 == 0
    _, nodes = judged_nodes(replace(run, nodes=replace(run.nodes, reached=reached)))
    assert len(nodes)
    assert not (nodes % 2).any()


def test_a_run_without_test_labels_is_judged_by_other_held_out_nodes() -> None:
    run = RUNS[0]
    part = numpy.where(run.nodes.part == PARTS.index("test"), PARTS.index("train"), run.nodes.part)
    assert judged_nodes(replace(run, nodes=replace(run.nodes, part=part)))[0] == "calibration"
    none = replace(run, nodes=replace(run.nodes, part=numpy.zeros_like(part)))
    assert [figure.key for figure in run_figures(none) if figure.key in ("confusion", "reliability")] == []
    assert "none is left to compare predictions with" in report_page(none)


@each_run
def test_names_are_text_everywhere(run: RunData) -> None:
    page = Page(report_page(run))
    assert page.open == []
    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    assert len(scripts) == 2  # the page's own
    assert not [tag for tag, _ in page.elements if tag in ("img", "iframe", "object", "link")]
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert any(NASTY[0] in text for text in page.texts)
    assert {each["src"] for _, each in page.elements if "src" in each} == set()
    links = [each["href"] or "" for _, each in page.elements if "href" in each]
    assert all(link.startswith(("#", "data:text/csv;")) for link in links)


@each_run
def test_headings_are_in_order_and_ids_are_unique(run: RunData) -> None:
    page = Page(report_page(run))
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] or "" for tag, attributes in page.elements if tag == "a"]
    targets = {link[1:] for link in links if link.startswith("#")}
    assert targets <= set(ids)
    tables = [attributes for tag, attributes in page.elements if tag == "table" and attributes.get("class") != "nested"]
    assert len(tables) == sum(tag == "caption" for tag, _ in page.elements)
    assert all(attributes.get("scope") in ("col", "row") for tag, attributes in page.elements if tag == "th")


@each_run
def test_every_figure_has_its_numbers_as_csv_without_formulas(run: RunData) -> None:
    files = csv_files(report_page(run))
    for figure in run_figures(run):
        assert f"{figure.key}.csv" in files
    for rows in files.values():
        assert len({len(row) for row in rows}) == 1
        for field in (field for row in rows for field in row):
            assert not field.startswith(("=", "+", "@", "\t", "\r"))
            assert not field.startswith("-") or float(field) < 0


def test_names_with_quotes_newlines_and_formulas_are_text_in_tables_and_csv() -> None:
    page = report_page(RUNS[0])
    fields = {field for rows in csv_files(page).values() for row in rows for field in row}
    assert {f"'{name}" if name[0] in "=@-" else name for name in NASTY} <= fields
    assert {" ".join(name.split()) for name in NASTY} <= set(Page(page).texts)


def test_csv_of_figures_reads_back_as_the_same_numbers() -> None:
    x, y = numpy.array([0.1, 0.2]), numpy.array([-1.5, numpy.nan])
    same = Figure("k", "", "", "=x", "y", [Line("-a", x, y), Line("b", x, y)])
    assert figure_csv(same) == "'=x,'-a,b\r\n0.1,-1.5,-1.5\r\n0.2,,\r\n"
    other = Figure("k", "", "", "x", "y", [Line("a", x, y), Line("b", x + 1, y)])
    assert figure_csv(other).splitlines()[0] == "series,x,y"
    bars = Figure("k", "", "", "x", "y", [Bars("n", numpy.array([3]), numpy.array([0.0, 1.0]))])
    assert figure_csv(bars) == "from,to,n\r\n0.0,1.0,3\r\n"
    named = Figure("k", "", "", "x", "y", [Bars("n", numpy.array([3]), categories=["two\nlines"])])
    assert list(csv.reader(io.StringIO(figure_csv(named), newline=""))) == [["x", "n"], ["two\nlines", "3"]]
    assert [csv_field(value) for value in ("=1+1", "\n=1", "a=1", -2, None)] == ["'=1+1", "'\n=1", "a=1", "-2", ""]


def test_tables_give_a_column_of_numbers_the_same_decimals() -> None:
    page = table("t", ("name", "a", "b", "c"), [("x", 86, 1200, 1.0), ("y", 85.94, 3, None)])
    assert re.findall(r">([\d.,\u2013]+)</td>", page) == ["86.00", "1,200", "1", "85.94", "3", "\u2013"]


def test_json_and_settings_cannot_end_their_element() -> None:
    block = json_block({"a": "</script>&\u2028"}, key="k")
    assert block.count("<") == 2
    assert "\u2028" not in block
    assert "<script>" not in nested_table({"<script>": [{"a": "<script>"}], "none": None, "list": ["<b>"]})


def test_the_policy_allows_the_scripts_of_the_page_and_no_other() -> None:
    page = html_page("<t>", "<main id='content'></main>", scripts=("let a = 1;",), connect="'self'")
    policy = next(dict(e)["content"] or "" for tag, e in Page(page).elements if e.get("http-equiv"))
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert policy.count("'sha256-") == 3
    assert "unsafe" not in policy.split("script-src")[1].split(";")[0]
    assert "connect-src &#x27;none&#x27;" in report_page(RUNS[0])


def test_the_flow_comes_first_where_there_is_one() -> None:
    page = report_page(with_flow(RUNS[0]))
    assert page.index('<section id="flow"') < page.index('<section id="summary"')
    assert viewer_css() in page
    assert f"<script>{viewer_js()}</script>" in page
    assert 'id="flow"' not in report_page(RUNS[0])
    assert viewer_js() not in report_page(RUNS[0])


def test_the_headline_is_the_test_score() -> None:
    assert re.search(r'class="headline"><dt>test accuracy</dt><dd>80.0%', report_page(RUNS[0]))
    assert re.search(r'class="headline"><dt>test root mean squared error</dt><dd>2.1<', report_page(RUNS[2]))


def test_scripts_have_no_eval_and_no_handlers_in_markup() -> None:
    script = asset("page.js")
    assert "eval(" not in script
    assert "innerHTML" not in script
    assert script.startswith('"use strict"')


def test_coverage_is_not_measured_at_the_nodes_that_made_the_sets() -> None:
    for run in RUNS:
        part = numpy.where(run.nodes.part == PARTS.index("calibration"), 4, run.nodes.part % 2)
        without = replace(run, nodes=replace(run.nodes, part=part))
        assert judged_nodes(without)[0] == "calibration"
        assert "coverage" in {figure.key for figure in run_figures(run)}
        assert "coverage" not in {figure.key for figure in run_figures(without)}


def test_a_node_that_no_label_reaches_has_no_prediction() -> None:
    run = replace(RUNS[0], nodes=replace(RUNS[0].nodes, reached=numpy.zeros(60, dtype=bool)))
    assert node_prediction(run, 0) == "no label reaches this node"
    assert node_prediction(RUNS[0], 0) in RUNS[0].names
