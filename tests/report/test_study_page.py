"""Studies as people read them: the page, the tables in a terminal, the figures, and progress."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from study_lines import line

from beltrami.config.recipe.catalogue import TRIED
from beltrami.lab.study import STUDIES, Record, Sample, plan, read_folder, tabulate
from beltrami.lab.study.comparison import Comparison, ratio
from beltrami.report.study.format import compared
from beltrami.report.study.page import figures, page, write
from beltrami.report.study.plot import plots
from beltrami.report.study.terminal import studies, tables
from beltrami.report.study.watch import Pace, Plain, watching

ROOT = Path(__file__).parents[2]


def some_lines() -> list[Record]:
    values = [("blend", 84.0), ("blend", 85.0), ("uniform", 83.0), ("uniform", 84.5)]
    found = [line(row, a, dataset="cora", split_seed=k % 2, seed=k % 2) for k, (row, a) in enumerate(values)]
    return [*found, line("blend", None, dataset="cora", split_seed=2, seed=2)]


def test_the_page_is_that_of_the_results() -> None:
    written = (ROOT / "docs" / "results.md").read_text()
    results = read_folder(ROOT / "results" / "study")
    assert page(results) == written, "run `python benchmarks/results.py --write`"
    for plot in figures(results):
        assert (ROOT / "docs" / "study" / f"{plot.name}.svg").is_file()


def test_a_cell_of_the_page_says_all() -> None:
    text = page({"random": some_lines()})
    half = Sample.of([84.0, 85.0]).half
    assert half is not None
    low, high = f"{84.5 - half:.2f}", f"{84.5 + half:.2f}"
    assert f"| blend | 84.50 ± 0.71<br>[{low}, {high}], n = 2, 1 failed<br>paper 84.8 ± 0.9 |" in text
    assert re.search(r"^\| blend - uniform \| \+0.75 \[-2.43, 3.93\], n = 2 \|$", text, flags=re.MULTILINE)
    assert "1 run failed and count" in text
    assert "Splits: digl. Measured on: cpu. torch: 2." in text
    assert "**test accuracy (%)**; the paper's: Table 3" in text
    assert "Table 3" not in page({"random": [line()]}).replace("Table 3: accuracy over random splits.", "")
    assert "## steps" not in text


def test_the_page_counts_what_was_tried() -> None:
    assert "tried" not in page({"random": [line(), line("uniform")]})
    assert f"blend on cora {TRIED['blend', 'cora']}" in page({"random": some_lines()})  # which older lines do not say
    text = page({"random": [line(tried=40), line("uniform")]})
    assert "Configurations tried on validation: blend on digits 40; of other rows nobody counted them." in text


def test_the_page_says_what_the_paper_says_outside_of_its_tables() -> None:
    assert "85.48 with PageRank rows, 85.28 with hyperbolic" in page({"positions": [line("ppr", study="positions")]})


def test_a_page_without_results_says_so() -> None:
    assert page({}).endswith("No study has left results yet.\n")


def test_ratios_are_told_as_ratios() -> None:
    assert compared(Sample(3, 2.348, 0.1), Comparison("a", "b", ratio), digits=4) == "2.35x [2.25, 2.45], n = 3"
    assert compared(Sample(1, -0.5, None), Comparison("a", "b"), digits=1) == "-0.5, n = 1"


def test_the_terminal_shows_the_same_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    tables(tabulate(STUDIES["random"], some_lines()), path=Path("random.jsonl"))
    out = capsys.readouterr().out
    for word in ("84.50 ± 0.71", "n = 2, 1 failed", "paper 84.8 ± 0.9", "+0.75 [-2.43, 3.93], n = 2", "1 run failed"):
        assert word in out
    assert "[95% interval of the mean, by Student's t]" in " ".join(out.split())


def test_a_narrow_terminal_shows_a_few_datasets_at_a_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = STUDIES["random"].datasets
    found = tabulate(STUDIES["random"], [line(row, dataset=name) for name in names for row in ("blend", "uniform")])
    for columns, grids in (("80", 4), ("400", 1)):
        monkeypatch.setenv("COLUMNS", columns)
        tables(found, path=Path("random.jsonl"))
        out = capsys.readouterr().out
        assert all(name in out for name in names)
        assert len(re.findall(r"^blend ", out, flags=re.MULTILINE)) == grids + grids  # its cells, and its pair


def test_the_list_names_every_study(capsys: pytest.CaptureFixture[str]) -> None:
    studies(STUDIES)
    out = capsys.readouterr().out
    assert all(re.search(rf"^{name}\b", out, flags=re.MULTILINE) for name in STUDIES)


def curve(study: str) -> list[Record]:
    return [
        line(row.name, 80.0 + k + split, study=study, split_seed=split, seed=split)
        for k, row in enumerate(STUDIES[study].rows)
        for split in range(2)
    ]


FIGURES: dict[str, Callable[[], dict[str, list[Record]]]] = {
    "random-paper": lambda: {"random": some_lines()},
    "steps-test-accuracy": lambda: {"steps": curve("steps")},
    "positions-test-accuracy": lambda: {"positions": curve("positions")},
    "time-flow": lambda: {"time": [line(study="time", also={"along": [[1.0, 70.0], [2.0, 80.0]]})]},
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_made_where_there_are_data_and_always_alike(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install beltrami[plot]")
    results = FIGURES[name]()
    assert [plot.name for plot in figures(results)] == [name]
    made = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        write(results, folder / "results.md")
        assert f"](study/{name}.svg)" in (folder / "results.md").read_text()
        made.append((folder / "study" / f"{name}.svg").read_bytes())
    assert made[0] == made[1]
    assert b"<svg" in made[0]
    assert len(made[0]) > 4000


def test_no_data_no_figure() -> None:
    (table,) = tabulate(STUDIES["random"], [line()])  # the paper has no figure of digits
    assert plots(table, [line()]) == []
    (steps,) = tabulate(STUDIES["steps"], [line("dopri5", study="steps")])
    assert plots(steps, []) == []


def test_curves_pass_through_the_means(tmp_path: Path) -> None:
    figure = pytest.importorskip("matplotlib.figure", reason="figures need matplotlib: pip install beltrami[plot]")
    lines = curve("steps")
    (table,) = tabulate(STUDIES["steps"], lines)
    (plot,) = plots(table, lines)
    axis: Any = figure.Figure().subplots()
    plot.panel(axis, "digits")
    euler = axis.containers[0].lines[0]
    assert list(euler.get_xdata()) == [0.25, 0.5, 1.0, 1.5, 2.0, 3.0]
    assert list(euler.get_ydata()) == [81.5, 82.5, 83.5, 84.5, 85.5, 86.5]
    assert axis.lines[-1].get_ydata()[0] == 80.5  # dopri5, level


def test_time_left_is_that_of_the_runs_so_far() -> None:
    clock = iter([0.0, 10.0, 20.0, 20.0, 6000.0, 6000.0])
    pace = Pace(3, clock=lambda: next(clock))
    assert [pace.step(), pace.step(), pace.step()] == ["about 20 s left", "about 10 s left", "in 1.7 h"]


def test_plain_progress_is_a_line_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    with watching(2, name="random") as watch:
        assert isinstance(watch, Plain)
        tasks = plan(STUDIES["random"], datasets=["digits"], splits=1)
        watch.begin(tasks)
        watch.epoch(1, 1)
        watch.end(line(accuracy=84.25))
        watch.fall_back(tasks, "one by one, since [x] fails")
        watch.end(line(accuracy=None, seed=1))
    err = capsys.readouterr().err.splitlines()
    assert len(err) == 3
    assert err[0].startswith("1/2 blend on digits, split 0, seed 0: test 84.25% (about ")
    assert err[1] == "one by one, since [x] fails"
    assert err[2].startswith("2/2 blend on digits, split 0, seed 1: failed: the loss became nan (in ")


def test_live_progress_says_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(force_terminal=True, record=True, width=160, file=None, stderr=True)
    monkeypatch.setattr("beltrami.report.study.watch.Console", lambda **_: console)
    with watching(2, name="random") as watch:
        watch.begin(plan(STUDIES["random"], datasets=["digits"], methods=["blend"], splits=2))
        watch.epoch(7, 2)
        bar = watch.bar  # type: ignore[attr-defined]
        assert bar.tasks[0].fields["state"].startswith("blend on digits, split 0, 2 together, epoch 7")
        watch.end(line(accuracy=None))
        assert bar.tasks[0].completed == 1
        assert "left" in bar.tasks[0].fields["state"]
    assert "blend on digits, split 0: the loss became nan" in console.export_text()


def test_live_progress_counts_what_is_under_way_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(force_terminal=True, record=True, width=160, file=None, stderr=True)
    monkeypatch.setattr("beltrami.report.study.watch.Console", lambda **_: console)
    tasks = plan(STUDIES["random"], datasets=["digits"], methods=["blend"], splits=5)
    with watching(5, name="random") as watch:

        def state() -> str:
            return str(watch.bar.tasks[0].fields["state"])  # type: ignore[attr-defined]

        watch.begin(tasks[:3])
        assert state().strip().startswith("blend on digits, split 0, 3 together  ")
        watch.begin(tasks[3:])
        assert state().startswith("blend on digits, split 3, 2 together, 5 under way  ")
        watch.fall_back(tasks[:3], "3 runs together are too many")
        watch.end(tasks[3].line("failed"))
        assert state().startswith("blend on digits, split 3, 2 together  ")
    assert "blend on digits, split 0, 3 together: 3 runs together are too many" in console.export_text()
