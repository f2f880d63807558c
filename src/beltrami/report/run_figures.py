"""The figures of a run."""

from collections.abc import Callable, Iterator

import numpy

from beltrami.report.class_scores import confusion, coverage_by, covered, judged_nodes, reliability
from beltrami.report.figure import Bars, Cells, Figure, Line, Values
from beltrami.report.figure_axes import number_text
from beltrami.report.run_data import PARTS, RunData

FIFTHS = 5  # groups of equal size in the coverage of intervals
WIDE_DEGREES = 30  # degrees above which the axes of their distribution are logarithmic
CALIBRATION = PARTS[-1]
STEEP = 20.0  # ratio of energies above which their axis is logarithmic

GROUPS = ("learning", "time", "predictions", "graph", "baselines")
"""The groups of figures, which are sections of the page."""


def run_figures(data: RunData) -> list[Figure]:
    """Return all figures that a run's data allow."""
    return [figure for group in GROUPS for figure in figures_of(data, group)]


def figures_of(data: RunData, group: str) -> list[Figure]:
    """Return the figures of one group."""
    makers: dict[str, Callable[[RunData], Iterator[Figure]]] = {
        "learning": _learning,
        "time": _along_time,
        "predictions": _numbers if data.kind == "numbers" else _classes,
        "graph": _graph,
        "baselines": _baselines,
    }
    return list(makers[group](data))


def score_axis(data: RunData) -> str:
    """Return the name of the score with its unit."""
    return data.metric if data.kind == "numbers" else f"{data.metric}, %"


def percent(data: RunData, score: Values) -> Values:
    """Return scores in per cent; errors of numbers stay as they are."""
    return numpy.asarray(score, dtype=float) * (1 if data.kind == "numbers" else 100)


def _learning(data: RunData) -> Iterator[Figure]:
    epochs = data.epochs.get("epoch")
    if epochs is None or not len(epochs):
        return
    if "loss" in data.epochs:
        columns = {"training": "loss", "validation": "validation loss"}
        lines = [Line(name, epochs, data.epochs[key]) for name, key in columns.items() if key in data.epochs]
        says = f"The loss on the {' and '.join(line.name for line in lines)} nodes after each epoch."
        yield Figure("loss", "Loss", says, "epoch", "loss", lines)
    if "validation" in data.epochs:
        says = f"The {data.metric} on the validation nodes after each epoch; the best epoch is kept."
        line = Line("validation", epochs, percent(data, data.epochs["validation"]))
        yield Figure("validation", f"Validation {data.metric}", says, "epoch", score_axis(data), [line])


def _along_time(data: RunData) -> Iterator[Figure]:
    along = data.along
    if along is None:
        return
    marks = {f"T = {number_text(along.chosen)}": along.chosen}
    if along.accuracy:
        name = data.metric
        says = f"The {name} if the flow ends at time t. The terminal time T is the best on the validation nodes."
        lines = [Line(part, along.times, percent(data, values)) for part, values in along.accuracy.items()]
        title = f"{name[:1].upper()}{name[1:]} over time"
        yield Figure("score-time", title, says, "time t", score_axis(data), lines, marks)
    lines = [Line(name, along.times, numpy.asarray(y, dtype=float)) for name, y in along.energies.items()]
    lines = [line for line in lines if line.y[0]]
    if lines:
        unit, compared = "energy", ""
        if len(lines) > 1:
            lines = [Line(line.name, line.x, line.y / line.y[0]) for line in lines]
            unit, compared = "energy / energy at 0", ", divided by their values at t = 0"
        low, high = (f(f(line.y) for line in lines) for f in (min, max))
        says = (
            f"Energies of the state z(t) along the flow{compared}. They fall while neighbouring nodes become more "
            "alike, and rise while they move apart."
        )
        log = "y" if low > 0 and high / low > STEEP else ""
        yield Figure("energy-time", "Energy over time", says, "time t", unit, lines, marks, log=log)


def _classes(data: RunData) -> Iterator[Figure]:
    part, nodes = judged_nodes(data)
    if not len(nodes):
        return
    if data.kind == "classes":
        says = f"How many of the {len(nodes):,} {part} nodes of a class (rows) were predicted as each class (columns)."
        cells = Cells("nodes", confusion(data, nodes), data.names, data.names)
        yield Figure("confusion", "Confusion matrix", says, "predicted class", "true class", [cells])
    if data.nodes.probabilities is not None:
        yield from _reliability(data, part, nodes)
    if data.nodes.sets is not None:
        yield from _sets(data, data.nodes.sets.sum(axis=1), part, nodes)


def _sets(data: RunData, sizes: Values, part: str, nodes: Values) -> Iterator[Figure]:
    """Yield the sizes of the sets and their coverage. The calibration nodes made the sets and say nothing about them:
    without other labels there are only the sizes at the nodes without a label."""
    judged = part != CALIBRATION
    if not judged:
        part, nodes = PARTS[0], numpy.flatnonzero(data.nodes.part == 0)
    counts = numpy.bincount(sizes[nodes])
    edges, size = numpy.arange(len(counts) + 1) - 0.5, f"{data.kind} in the set"
    if len(nodes):
        says = f"How many of the {len(nodes):,} {part} nodes have a conformal set of so many {data.kind}."
        yield Figure("set-sizes", "Sizes of the sets", says, size, "nodes", [Bars("nodes", counts, edges)])
    if judged:
        holds = covered(data, nodes)
        truth = "all true labels are" if data.kind == "labels" else "the true class is"
        says = (
            f"The share of {part} nodes whose set holds the truth ({truth} in it), by the size of the set; "
            f"{100 * holds.mean():.1f}% of all. The promise is for all sizes together."
        )
        yield _coverage("Coverage of the sets", says, size, data, 100 * coverage_by(sizes[nodes], holds), edges)


def _reliability(data: RunData, part: str, nodes: Values) -> Iterator[Figure]:
    found = reliability(data, nodes)
    middle = 100 * (found.edges[:-1] + found.edges[1:]) / 2
    what = "label" if data.kind == "labels" else "predicted class"
    says = (
        f"How often a {what} is right against its predicted probability, at {part} nodes in {len(middle)} bins. On the "
        f"dashed line probabilities are exact; the expected calibration error is {100 * found.error:.1f}%."
    )
    seen = found.counts > 0
    line = Line("observed", 100 * found.confidence[seen], 100 * found.accuracy[seen])
    axes = ("predicted probability, %", "right, %")
    yield Figure("reliability", "Reliability", says, *axes, [line], diagonal=True, bounds=(0, 100))
    says = f"How many predictions at {part} nodes have a probability in each bin of the reliability diagram."
    bars = Bars("predictions", found.counts, 100 * found.edges)
    yield Figure("confidence", "Predicted probabilities", says, axes[0], "predictions", [bars])


def _coverage(title: str, says: str, x: str, data: RunData, shares: Values, edges: Values) -> Figure:
    """Return the figure of coverage, with a line at the coverage that was asked for."""
    series: list[Line | Bars] = [Bars("observed", shares, edges)]
    if data.coverage is not None:
        series.append(Line("asked for", edges[[0, -1]], numpy.full(2, 100 * data.coverage), steps=True))
    return Figure("coverage", title, says, x, "covered, %", series, bounds=(0, 100))


def _numbers(data: RunData) -> Iterator[Figure]:
    part, nodes = judged_nodes(data)
    if not len(nodes):
        return
    true, predicted = (numpy.asarray(each[nodes], dtype=float) for each in (data.nodes.label, data.nodes.predicted))
    name = data.names[0] if data.names else "value"
    says = f"Predicted against true {name} at {len(nodes):,} {part} nodes. On the dashed line predictions are exact."
    dots = Line(part, true, predicted, dots=True)
    yield Figure("predicted-true", "Predicted and true", says, f"true {name}", "predicted", [dots], diagonal=True)
    counts, edges = numpy.histogram(predicted - true, bins=min(30, max(5, int(len(nodes) ** 0.5))))
    says = f"Predicted minus true {name} at the {part} nodes; the mean is {number_text((predicted - true).mean())}."
    yield Figure("residuals", "Residuals", says, "predicted - true", "nodes", [Bars("nodes", counts, edges)])
    if data.nodes.interval is not None and part != CALIBRATION:
        holds = covered(data, nodes)
        fifth = numpy.argsort(numpy.argsort(predicted, kind="stable")) * FIFTHS // len(nodes)
        shares = coverage_by(fifth, holds)
        says = (
            f"The share of {part} nodes whose interval holds the true {name}, by fifths of the predictions, from the "
            f"lowest to the highest; {100 * holds.mean():.1f}% of all."
        )
        edges = numpy.arange(len(shares) + 1) + 0.5
        yield _coverage("Coverage of the intervals", says, "fifth of the predictions", data, 100 * shares, edges)


def _graph(data: RunData) -> Iterator[Figure]:
    degree = data.nodes.degree
    if len(degree) and degree.max() > 0:
        highest, alone = int(degree.max()), int((degree == 0).sum())
        wide = highest > WIDE_DEGREES
        edges = numpy.unique(numpy.geomspace(1, highest + 1, 24).round()) if wide else numpy.arange(highest + 2.0)
        counts, _ = numpy.histogram(degree, edges)
        says = (
            f"How many nodes have so many neighbours: {degree.mean():.1f} on average, at most {highest:,}; {alone:,} "
            "have none."
        )
        bars = Bars("nodes", counts, edges - 0.5)
        yield Figure("degrees", "Degrees", says, "neighbours", "nodes", [bars], log="xy" if wide else "")
    if data.weights is not None and len(data.weights):
        counts, edges = numpy.histogram(data.weights, bins=30)
        says = (
            f"The diffusivities (attention) of all {len(data.weights):,} edges of the flow's graph at t = 0, loops "
            "included."
        )
        yield Figure(
            "diffusivity", "Diffusivity", says, "diffusivity", "edges", [Bars("edges", counts, edges)], log="y"
        )


def _baselines(data: RunData) -> Iterator[Figure]:
    if len(data.baselines) < 2:
        return
    names = [name for name, _, _ in data.baselines]
    scores = {
        "validation": [validation for _, validation, _ in data.baselines],
        "test": [numpy.nan if test is None else test for _, _, test in data.baselines],
    }
    bars = [Bars(part, percent(data, numpy.array(y)).round(2), categories=names) for part, y in scores.items()]
    bars = [each for each in bars if numpy.isfinite(each.y).any()]
    says = f"The {data.metric} of this run and of the models that it is compared with."
    yield Figure("baselines", "Baselines", says, "model", score_axis(data), bars)
