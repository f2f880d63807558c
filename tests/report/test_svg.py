"""Figures as SVG: marks lie where a linear map of the data puts them, texts are texts, ticks are round."""

import math
import re
from xml.etree import ElementTree

import numpy
import pytest
from run_data_examples import NASTY, class_run, label_run, number_run

from beltrami.report.figure import Bars, Cells, Figure, Line
from beltrami.report.figure_axes import Scale, number_text, tick_texts, value_range
from beltrami.report.run_data import RunData
from beltrami.report.run_figures import run_figures
from beltrami.report.svg import BELOW_BARS, MOST_POINTS, svg

SVG = "{http://www.w3.org/2000/svg}"


def elements(figure: Figure, style: str) -> list[ElementTree.Element]:
    """Return the elements of a figure that have a class."""
    return [each for each in ElementTree.fromstring(svg(figure)).iter() if style in each.get("class", "").split()]


def points(path: ElementTree.Element) -> numpy.ndarray:
    """Return the coordinates of a path of M and L, or of dots."""
    return numpy.array(re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path.get("d", "")), dtype=float)


def line_figure(**options: object) -> Figure:
    x = numpy.array([0.0, 1.0, 3.0, 10.0])
    one, two = numpy.array([2.0, 5.0, 3.0, 8.0]), numpy.array([1.0, math.nan, 2.0, 4.0])
    lines = [Line("one", x, one), Line(NASTY[0], x, two)]
    return Figure("curve", "A <title>", "Says & more.", "x", "y", lines, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("run", [class_run(), label_run(), number_run()], ids=lambda run: run.kind)
def test_every_figure_of_a_run_is_xml_with_a_title_and_a_description(run: RunData) -> None:
    figures = run_figures(run)
    assert len({figure.key for figure in figures}) == len(figures)
    for figure in figures:
        root = ElementTree.fromstring(svg(figure))
        title, description = root.findall(f"{SVG}title")[0], root.findall(f"{SVG}desc")[0]
        assert (title.text, description.text) == (figure.title, figure.says)
        assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
        assert root.get("role") == "img"
        assert "nan" not in "".join(each.get("d", "") for each in root.iter())


def test_points_of_a_line_lie_on_a_linear_map_of_the_data() -> None:
    figure = line_figure()
    drawn = points(elements(figure, "line")[2])  # the first two are in the legend
    for axis, values in enumerate((figure.series[0].x, figure.series[0].y)):  # type: ignore[union-attr]
        slope, start = numpy.polyfit(values, drawn[:, axis], 1)
        assert drawn[:, axis] == pytest.approx(slope * values + start, abs=0.01)
        assert (slope > 0) == (axis == 0)
    width, height = map(float, ElementTree.fromstring(svg(figure)).get("viewBox", "").split()[2:])
    assert (drawn >= 0).all()
    assert (drawn <= [width, height]).all()


def test_ticks_stand_where_their_values_are() -> None:
    figure = line_figure()
    drawn = points(elements(figure, "line")[2])
    slope, start = numpy.polyfit(figure.series[0].y, drawn[:, 1], 1)  # type: ignore[union-attr]
    ticks = [each for each in elements(figure, "tick") if each.get("text-anchor") == "end"]
    assert len(ticks) >= 4
    for tick in ticks:
        assert float(tick.get("y", "")) - 4 == pytest.approx(slope * float(tick.text or "") + start, abs=0.06)


def test_a_missing_value_interrupts_the_line() -> None:
    assert elements(line_figure(), "line")[3].get("d", "").count("M") == 2


def test_the_lowest_bar_of_a_logarithmic_axis_has_a_height() -> None:
    bars = Bars("n", numpy.array([1, 0, 300]), numpy.arange(4.0))
    heights = [float(each.get("height", 0)) for each in elements(Figure("log", "", "", "", "", [bars], log="y"), "bar")]
    assert len(heights) == 2  # there is no logarithm of 0
    assert heights[0] > 5
    ratio = math.log(300 / BELOW_BARS) / math.log(1 / BELOW_BARS)
    assert heights[1] / heights[0] == pytest.approx(ratio, rel=0.01)


def test_logarithmic_axes_map_logarithms() -> None:
    y = numpy.array([0.01, 1.0, 50.0])
    drawn = points(elements(Figure("log", "", "", "", "", [Line("a", y, y)], log="xy"), "line")[0])
    for axis in (0, 1):
        slope, start = numpy.polyfit(numpy.log(y), drawn[:, axis], 1)
        assert drawn[:, axis] == pytest.approx(slope * numpy.log(y) + start, abs=0.01)


def test_bars_have_heights_in_proportion_and_stand_on_one_line() -> None:
    counts, edges = numpy.array([3.0, 0.0, 9.0]), numpy.array([0.0, 1.0, 2.0, 4.0])
    found = elements(Figure("bars", "", "", "", "", [Bars("n", counts, edges)]), "bar")
    heights, tops = (numpy.array([float(each.get(key, "")) for each in found]) for key in ("height", "y"))
    assert heights / heights[0] == pytest.approx(counts / counts[0], abs=0.01)
    assert (heights + tops).round(1).tolist() == [(heights + tops)[0].round(1)] * 3
    assert float(found[2].get("width", "")) == pytest.approx(2 * float(found[0].get("width", "")), rel=0.05)


def test_lying_bars_have_lengths_in_proportion_and_their_values_written() -> None:
    bars = [Bars("score", numpy.array([20.0, 80.0, math.nan]), categories=["a long name", NASTY[0], "none"])]
    found = elements(Figure("bars", "", "", "", "", bars), "bar")
    assert float(found[1].get("width", "")) == pytest.approx(4 * float(found[0].get("width", "")), abs=0.05)
    assert {"20", "80", NASTY[0]} <= {each.text for each in elements(Figure("b", "", "", "", "", bars), "tick")}


def test_cells_show_counts_and_their_share_of_the_row() -> None:
    values = numpy.array([[3, 1], [0, 6]])
    figure = Figure("cells", "", "", "", "", [Cells("n", values, NASTY[:2], NASTY[:2])])
    assert [each.text for each in elements(figure, "cell-number")] == ["3", "1", "6"]
    shares = [(float(each.get("fill-opacity", "")) - 0.04) / 0.96 for each in elements(figure, "cell")]
    assert shares == pytest.approx([0.75, 0.25, 0, 1], abs=1e-3)
    assert f"{NASTY[0]}, {NASTY[1]}: 1 (25% of the row)" in [t.text for t in ElementTree.fromstring(svg(figure)).iter()]


@pytest.mark.parametrize(("count", "numbers"), [(15, True), (16, False), (60, False)])
def test_many_classes_have_no_numbers_and_names_that_do_not_overlap(count: int, numbers: bool) -> None:
    names = [f"class {k}" for k in range(count)]
    figure = Figure("cells", "", "", "", "", [Cells("n", numpy.ones((count, count)), names, names)])
    assert bool(elements(figure, "cell-number")) == numbers
    heights = [float(each.get("y", "")) for each in elements(figure, "tick") if each.get("x") != "0.0"]
    assert min(numpy.diff(heights)) >= 12


def test_names_appear_as_text_only() -> None:
    for name in NASTY:
        figure = Figure("key", name, name, name, name, [Line(name, numpy.arange(3), numpy.arange(3))])
        texts = [each.text for each in ElementTree.fromstring(svg(figure)).iter()]
        assert " ".join(name.split()) in [" ".join((each or "").split()) for each in texts]
    assert "\x00" not in svg(Figure("k", "a\x00b\x0b", "", "", "", [Line("", numpy.arange(2), numpy.arange(2))]))


def test_series_differ_by_class_and_a_long_series_is_thinned() -> None:
    x = numpy.arange(10 * MOST_POINTS)
    figure = Figure("dots", "", "", "", "", [Line("a", x, x, dots=True), Line("b", x, x, dots=True)])
    found = [each for each in elements(figure, "dots") if len(points(each)) > 1]
    assert [each.get("class", "").split()[1] for each in found] == ["s0", "s1"]
    assert len(points(found[0])) == MOST_POINTS


def test_marks_and_the_diagonal_lie_where_the_axes_say() -> None:
    figure = line_figure(marks={"T = 3": 3.0})
    x = float(re.findall(r"M([\d.]+)", elements(figure, "mark")[0].get("d", ""))[0])
    assert x == pytest.approx(points(elements(figure, "line")[2])[2, 0], abs=0.06)
    assert elements(figure, "mark-name")[0].text == "T = 3"
    square = Figure("square", "", "", "", "", [Line("a", numpy.array([0, 10]), numpy.array([0, 10]))], diagonal=True)
    ends = points(elements(square, "reference")[0])
    assert ends == pytest.approx(points(elements(square, "line")[0]), abs=0.06)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.13, 0.87), (-3, 40), (1e-7, 5e-7), (990, 1010), (0, 123456)])
def test_ticks_are_round_and_inside(low: float, high: float) -> None:
    ticks = Scale(low, high, 0, 1).ticks()
    assert 3 <= len(ticks) <= 8
    assert all(low - 1e-12 <= tick <= high * (1 + 1e-9) for tick in ticks)
    step = ticks[1] - ticks[0]
    assert round(step / 10 ** math.floor(math.log10(step * 1.0001))) in (1, 2, 5)
    assert [float(each.replace(",", "")) for each in tick_texts(ticks)] == pytest.approx(ticks)
    assert len(set(tick_texts(ticks))) == len(ticks)


def test_ranges_are_never_empty() -> None:
    assert value_range([numpy.array([5.0])]) == (2.5, 7.5)
    assert value_range([numpy.array([math.nan])]) == (0.0, 1.0)
    assert value_range([]) == (-0.5, 0.5)
    low, high = value_range([numpy.array([0.0, 3.0])], log=True)
    assert low == 3 < high
    assert [number_text(v) for v in (1234.0, 0.12344, math.nan)] == ["1,234", "0.1234", "-"]
