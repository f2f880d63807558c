"""The page, the tables in a terminal and the figures show the same numbers."""

import re
from collections.abc import Callable
from dataclasses import replace
from operator import truediv
from pathlib import Path
from typing import Any

import pytest
from study_records import a_record

from beltrami.config.parser import departures
from beltrami.config.recipe.recipes import TRIED
from beltrami.lab.study.planning import Comparison, missing_cells, plan
from beltrami.lab.study.record import Record, read_folder, setup_of
from beltrami.lab.study.studies import STUDIES
from beltrami.lab.study.summary import Sample, tabulate
from beltrami.report.study_figures import over_datasets, plots
from beltrami.report.study_page import figures, results_page, write_page
from beltrami.report.study_terminal import comparison_text, missing_texts, print_studies, print_tables

ROOT = Path(__file__).parents[2]
HEADER = "|  | cora | citeseer | pubmed | coauthor-cs | computers | photo | ogbn-arxiv |"


def some_records() -> list[Record]:
    values = [("blend", 84.0), ("blend", 85.0), ("uniform", 83.0), ("uniform", 84.5)]
    found = [a_record(name, a, dataset="cora", split_seed=k % 2, seed=k % 2) for k, (name, a) in enumerate(values)]
    return [*found, a_record("blend", None, dataset="cora", split_seed=2, seed=2)]


@pytest.mark.slow
def test_the_page_in_the_docs_is_made_from_the_results() -> None:
    written = (ROOT / "docs" / "results.md").read_text()
    results = read_folder(ROOT / "results" / "study")
    assert results_page(results) == written, "run `python benchmarks/results.py --write`"
    for plot in figures(results):
        assert (ROOT / "docs" / "study" / f"{plot.name}.svg").is_file()


@pytest.mark.slow
def test_a_cell_has_mean_deviation_interval_counts_and_the_papers_figure() -> None:
    text = results_page({"random": some_records()})
    half = Sample.of([84.0, 85.0]).half
    assert half is not None
    low, high = f"{84.5 - half:.2f}", f"{84.5 + half:.2f}"
    assert f"| blend | 84.50 ± 0.71<br>[{low}, {high}], n = 2, 1 failed<br>paper 84.8 ± 0.9 |" in text
    assert re.search(r"^\| blend - uniform \| \+0.75 \[-2.43, 3.93\], n = 2<br>p = 0.205 \|$", text, flags=re.MULTILINE)
    assert "1 run failed and count" in text
    assert "Splits: digl. Measured on: cpu. torch: 2." in text
    assert "**test accuracy (%)**; the paper's: Table 3" in text
    assert "Table 3" not in results_page({"random": [a_record()]}).replace("Table 3: accuracy over random splits.", "")
    assert "## steps" not in text


@pytest.mark.slow
def test_the_page_states_how_many_configurations_were_tried() -> None:
    text = results_page({"random": some_records()})
    assert f"Configurations compared on validation\n\n{HEADER}" in text
    assert f"| uniform, blend | {TRIED['blend', 'cora']} |" in text
    text = results_page({"random": [a_record("blend", tried=40), a_record("mine"), a_record("gcn", dataset="pubmed")]})
    assert re.search(r"^\| blend \|( *\|){7} 40 \|$", text, flags=re.MULTILINE)
    assert re.search(r"^\| mine \|( *\|){7} not on record \|$", text, flags=re.MULTILINE)
    assert re.search(r"^\| gcn \|  \|  \| 1 \|( *\|){5}$", text, flags=re.MULTILINE)
    assert "compared on validation" not in results_page({"parameters": [a_record(study="parameters")]})


@pytest.mark.slow
def test_missing_cells_are_named_with_the_command_that_fills_them(capsys: pytest.CaptureFixture[str]) -> None:
    text = results_page({"random": some_records()})
    row = next(line for line in text.splitlines() if line.startswith("| paper |"))
    assert row == "| paper | missing | missing | missing | missing | missing | missing | missing |"
    assert re.search(r"^\| gcn \| missing( \| missing){5} \|  \|$", text, flags=re.MULTILINE)  # no recipe for the last
    command = "`beltrami study random --methods uniform,blend --datasets citeseer,pubmed,coauthor-cs,computers,photo,"
    cells = "uniform, blend on citeseer, pubmed, coauthor-cs, computers, photo, ogbn-arxiv"
    assert f"- {cells} (1,020 runs, 12 cells of unknown duration): {command}" in text
    records = [*some_records(), a_record("gcn", dataset="photo")]
    print_tables(
        tabulate(STUDIES["random"], records), path=Path("r"), missing=missing_cells(STUDIES["random"], records)
    )
    out = capsys.readouterr().out
    assert "missing: gcn on cora: `beltrami study random --methods gcn --datasets cora --device cuda --resume`" in out
    assert "paper-knn" not in out  # rows without any run are on the page alone


def test_missing_cells_have_an_estimate_of_their_time_from_the_slowest_method_on_the_dataset() -> None:
    def took(seconds: float, method: str, device: str = "NVIDIA H200") -> Record:
        record = a_record(method, dataset="cora")
        return replace(record, result={**(record.result or {}), "train_seconds": seconds, "device": device})

    records = [took(30.0, "uniform"), took(10.0, "blend"), took(3000.0, "gat", device="cpu")]
    texts = missing_texts(STUDIES["random"], [("gcn", "cora"), ("gcn", "photo")], records)
    assert [text.partition(":")[0] for text in texts] == [
        f"gcn on cora, photo (200 runs, about {1.2 * 100 * 30 / 3600:.1f} hours, 1 cell of unknown duration)"
    ]


def test_cells_of_earlier_settings_are_named_with_the_command_that_measures_them_again() -> None:
    run = plan(STUDIES["steps"], splits=1, inits=1)[0]
    present = a_record(run.method, study="steps", dataset=run.config.dataset, settings=departures(run.config))
    present = replace(present, setup=setup_of(run.config))
    heading = "Measured before the recipe had its present settings:"
    assert heading not in results_page({"steps": [present]})
    text = results_page({"steps": [replace(present, setup="0123456789abcdef")]})
    name, dataset = run.method, run.config.dataset
    command = f"`beltrami study steps --methods {name} --datasets {dataset} --device cuda --resume`"
    line = f"- {name} on {dataset}: remove their lines from results/study/steps.jsonl, and run {command}"
    assert f"{heading}\n\n{line}" in text


def test_the_page_has_the_notes_of_the_studies() -> None:
    assert "85.48 with PageRank rows, 85.28 with hyperbolic" in results_page(
        {"positions": [a_record("ppr", study="positions")]}
    )


def test_a_page_without_results_says_so() -> None:
    assert results_page({}).endswith("No study has left results yet.\n")


def test_ratios_are_printed_as_ratios() -> None:
    assert comparison_text(Sample(3, 2.348, 0.1), Comparison("a", "b", truediv), 4) == "2.35x [2.25, 2.45], n = 3"
    assert comparison_text(Sample(1, -0.5, None), Comparison("a", "b"), 1) == "-0.5, n = 1"


def test_the_terminal_shows_the_same_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    print_tables(tabulate(STUDIES["random"], some_records()), path=Path("random.jsonl"))
    out = capsys.readouterr().out
    words = ("84.50 ± 0.71", "n = 2, 1 failed", "paper 84.8 ± 0.9", "+0.75 [-2.43, 3.93], n = 2", "1 run failed")
    for word in (*words, "p = 0.205"):
        assert word in out
    assert "[95% interval of the mean, by Student's t]" in " ".join(out.split())


def test_a_narrow_terminal_shows_a_few_datasets_at_a_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = STUDIES["random"].datasets
    found = tabulate(
        STUDIES["random"], [a_record(method, dataset=name) for name in names for method in ("blend", "uniform")]
    )
    for columns, grids in (("80", 4), ("400", 1)):
        monkeypatch.setenv("COLUMNS", columns)
        print_tables(found, path=Path("random.jsonl"))
        out = capsys.readouterr().out
        assert all(name in out for name in names)
        assert len(re.findall(r"^blend ", out, flags=re.MULTILINE)) == grids + grids  # its cells, and its pair


def test_the_list_has_every_study(capsys: pytest.CaptureFixture[str]) -> None:
    print_studies(STUDIES)
    out = capsys.readouterr().out
    assert all(re.search(rf"^{name}\b", out, flags=re.MULTILINE) for name in STUDIES)


def curve(study: str) -> list[Record]:
    return [
        a_record(method.name, 80.0 + k + split, study=study, split_seed=split, seed=split)
        for k, method in enumerate(STUDIES[study].methods)
        for split in range(2)
    ]


def ranked() -> list[Record]:
    """Records of four methods on the datasets of the study, which rank in the same order everywhere."""
    names = STUDIES["attention"].datasets
    methods = {"uniform": 80.0, "angle": 81.0, "gaussian": 82.0, "alike": 83.0}
    return [a_record(name, a, study="attention", dataset=one) for one in names for name, a in methods.items()]


FIGURES: dict[str, Callable[[], dict[str, list[Record]]]] = {
    "random-paper": lambda: {"random": some_records()},
    "steps-test-accuracy": lambda: {"steps": curve("steps")},
    "positions-test-accuracy": lambda: {"positions": curve("positions")},
    "attention-ranks": lambda: {"attention": [*ranked(), a_record("cosine-live", study="attention", dataset="cora")]},
    "time-flow": lambda: {"time": [a_record(study="time", extra={"along": [[1.0, 70.0], [2.0, 80.0]]})]},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_made_if_there_are_data_and_are_reproducible(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install beltrami[plot]")
    results = FIGURES[name]()
    assert [plot.name for plot in figures(results)] == [name]
    made = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        write_page(results, folder / "results.md")
        assert f"](study/{name}.svg)" in (folder / "results.md").read_text()
        made.append((folder / "study" / f"{name}.svg").read_bytes())
    assert made[0] == made[1]
    assert b"<svg" in made[0]
    assert len(made[0]) > 4000


def test_there_is_no_figure_without_data() -> None:
    (table,) = tabulate(STUDIES["random"], [a_record()])  # the paper has no figure of digits
    assert plots(table, [a_record()]) == []
    (steps,) = tabulate(STUDIES["steps"], [a_record("dopri5", study="steps")])
    assert plots(steps, []) == []


@pytest.mark.slow
def test_curves_pass_through_the_means(tmp_path: Path) -> None:
    figure = pytest.importorskip("matplotlib.figure", reason="figures need matplotlib: pip install beltrami[plot]")
    records = curve("steps")
    (table,) = tabulate(STUDIES["steps"], records)
    (plot,) = plots(table, records)
    axis: Any = figure.Figure().subplots()
    plot.panel(axis, "digits")
    euler = axis.containers[0].lines[0]
    assert list(euler.get_xdata()) == [0.25, 0.5, 1.0, 1.5, 2.0, 3.0]
    assert list(euler.get_ydata()) == [81.5, 82.5, 83.5, 84.5, 85.5, 86.5]
    assert axis.lines[-1].get_ydata()[0] == 80.5  # dopri5, level


@pytest.mark.slow
def test_the_figure_of_ranks_joins_methods_that_are_not_told_apart() -> None:
    figure = pytest.importorskip("matplotlib.figure", reason="figures need matplotlib: pip install beltrami[plot]")
    table, _ = tabulate(STUDIES["attention"], ranked())
    ranking = table.ranking
    assert ranking is not None
    assert dict(ranking.average) == {"alike": 1.0, "gaussian": 2.0, "angle": 3.0, "uniform": 4.0}
    plot = over_datasets(table)
    assert plot is not None
    assert plot.caption.startswith("average ranks by test accuracy (%) over 6 datasets; Friedman's test: p < 0.001")
    axis: Any = figure.Figure().subplots()
    plot.panel(axis, "6 datasets")
    bars = [list(line.get_xdata()) for line in axis.lines[4:]]
    length = 2.569 * (4 * 5 / (6 * 6)) ** 0.5
    assert bars[:-2] == [[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]]  # q = 2.569 for four methods: 1.91
    assert bars[-2] == pytest.approx([1.0, 1 + length], abs=1e-3)
    assert {text.get_text() for text in axis.texts} == {"alike 1.00", "gaussian 2.00", "angle 3.00", "uniform 4.00"}


def test_there_are_no_ranks_of_few_datasets_or_methods() -> None:
    few, _ = tabulate(STUDIES["attention"], [each for each in ranked() if each.dataset in ("cora", "photo")])
    two, _ = tabulate(STUDIES["attention"], [each for each in ranked() if each.method in ("uniform", "angle")])
    assert few.ranking is None
    assert two.ranking is None
