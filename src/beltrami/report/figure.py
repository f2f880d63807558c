"""Descriptions of figures: what is drawn, as data. `svg` draws them for a page, `plot` with matplotlib, and their
numbers are written as CSV."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

Values = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Line:
    """A line through points; with ``dots`` only the points are drawn, with ``steps`` the line is a step function."""

    name: str
    x: Values
    y: Values
    dots: bool = False
    steps: bool = False


@dataclass(frozen=True, eq=False)
class Bars:
    """Bars of heights ``y`` between ``edges`` (one more than ``y``), a histogram; or at named categories."""

    name: str
    y: Values
    edges: Values | None = None
    categories: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Cells:
    """A matrix of numbers as coloured cells with its values written in, rows from the top."""

    name: str
    values: Values
    rows: Sequence[str]
    columns: Sequence[str]


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure with one pair of axes.

    Args:
        key: a short name of letters and hyphens, for files: "learning-curves".
        title: in words.
        says: one or two sentences: what is shown and how to read it. Also the description for screen readers.
        x: the label of the horizontal axis, with its unit.
        marks: vertical lines at these x, by their names, such as the chosen time.
        diagonal: draw the line y = x for comparison.
        log: "x", "y" or "xy" for logarithmic axes.
        bounds: lowest and highest y; found from the data by default.
    """

    key: str
    title: str
    says: str
    x: str
    y: str
    series: Sequence[Line | Bars | Cells]
    marks: Mapping[str, float] = field(default_factory=dict)
    diagonal: bool = False
    log: str = ""
    bounds: tuple[float, float] | None = None
