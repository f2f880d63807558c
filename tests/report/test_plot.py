"""Figures as files of matplotlib: every format, names as they are, and numbers in the cells."""

from pathlib import Path

import numpy
import pytest

from beltrami.report.figure import Bars, Cells, Figure, Line
from beltrami.report.plot import FORMATS, draw, save_figures

X, COUNTS = numpy.linspace(0.1, 1, 5), numpy.array([[7, 2], [0, 91]])
FIGURES = [
    Figure("lines", "A $title$", "", "time", "loss", [Line("a", X, X), Line("<b>", X, X**2)], marks={"chosen": 0.4}),
    Figure("dots", "Dots", "", "x", "y", [Line("dots", X, X, dots=True)], diagonal=True, log="xy", bounds=(0.01, 2)),
    Figure("bars", "Bars", "", "degree", "nodes", [Bars("nodes", numpy.array([3, 1]), edges=numpy.array([0, 1, 2]))]),
    Figure("named", "Named", "", "", "score", [Bars("s", numpy.array([3, 1]), categories=["$p$", "q & r"])]),
    Figure("cells", "Cells", "", "predicted", "true", [Cells("c", COUNTS, ["a", "b"], ["c", "d"])]),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_every_figure_becomes_a_file(form: str, tmp_path: Path) -> None:
    paths = save_figures(FIGURES, tmp_path, form)
    assert [path.name for path in paths] == [f"{figure.key}.{form}" for figure in FIGURES]
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert all(path.read_bytes().startswith(begins[form]) for path in paths)


@pytest.mark.parametrize(
    ("figure", "texts"),
    [(0, ["A $title$", ">a<", "&lt;b&gt;", "chosen", "loss"]), (3, ["$p$", "q &amp; r"]), (4, [">7<", ">91<"])],
)
def test_names_and_numbers_are_text(figure: int, texts: list[str]) -> None:
    svg = draw(FIGURES[figure], "svg").decode()
    assert [text for text in texts if text not in svg] == []


def test_the_same_figure_gives_the_same_file() -> None:
    assert draw(FIGURES[0], "svg") == draw(FIGURES[0], "svg")
