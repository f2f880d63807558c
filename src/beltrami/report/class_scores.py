"""How right predictions are: confusion, precision and recall of each class, reliability, and coverage of sets."""

from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from beltrami.report.run_data import PARTS, Floats, Integers, RunData

BINS = 15
Mask = NDArray[numpy.bool_]


def judged_nodes(data: RunData) -> tuple[str, Integers]:
    """Return the part of the split by which a run is judged, and its nodes with a known label and a prediction: the
    test nodes, or where there are none the calibration or validation nodes."""
    known = known_labels(data)
    if data.nodes.reached is not None:
        known = known & data.nodes.reached
    for name in ("test", "calibration", "validation"):
        found = numpy.flatnonzero(known & (data.nodes.part == PARTS.index(name)))
        if len(found):
            return name, found
    return "test", numpy.empty(0, dtype=numpy.int64)


def known_labels(data: RunData) -> Mask:
    """Return the mask (n,) of nodes whose label is known."""
    label = data.nodes.label
    if data.kind == "numbers":
        finite: Mask = numpy.isfinite(label.astype(float))
        return finite
    known: Mask = numpy.all((label >= 0).reshape(len(label), -1), axis=1)
    return known


def confusion(data: RunData, nodes: Integers) -> Integers:
    """Return how many of the nodes of each class (rows) were predicted as each class (columns)."""
    count = len(data.names)
    pairs = data.nodes.label[nodes].astype(int) * count + data.nodes.predicted[nodes].astype(int)
    return numpy.bincount(pairs, minlength=count**2).reshape(count, count)


@dataclass(frozen=True)
class ClassScore:
    """The scores of one class or label; a ratio of nothing is NaN."""

    name: str
    count: int
    predicted: int
    precision: float
    recall: float
    f1: float


def class_scores(data: RunData, nodes: Integers) -> list[ClassScore]:
    """Return the scores of each class or label at nodes."""
    if data.kind == "labels":
        true, predicted = data.nodes.label[nodes] > 0, data.nodes.predicted[nodes] > 0
        right, counts, guesses = (each.sum(axis=0) for each in (true & predicted, true, predicted))
    else:
        table = confusion(data, nodes)
        right, counts, guesses = table.diagonal(), table.sum(axis=1), table.sum(axis=0)
    return [
        ClassScore(name, int(n), int(m), _ratio(k, m), _ratio(k, n), _ratio(2 * k, n + m))
        for name, k, n, m in zip(data.names, right, counts, guesses, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predictions in bins of equal width by their probability: their number, mean probability and share that is right,
    NaN in empty bins; ``error`` is the expected calibration error, the mean difference of the two."""

    edges: Floats
    counts: Integers
    confidence: Floats
    accuracy: Floats
    error: float


def reliability(data: RunData, nodes: Integers, *, bins: int = BINS) -> Reliability:
    """Return the reliability of the probabilities of the predicted class, for labels of every label."""
    assert data.nodes.probabilities is not None
    p = data.nodes.probabilities[nodes].astype(float)
    if data.kind == "labels":
        confidence, right = p.ravel(), (data.nodes.label[nodes] > 0).ravel()
    else:
        predicted = data.nodes.predicted[nodes].astype(int)
        confidence, right = p[numpy.arange(len(p)), predicted], predicted == data.nodes.label[nodes]
    where = numpy.clip((confidence * bins).astype(int), 0, bins - 1)
    counts = numpy.bincount(where, minlength=bins)
    with numpy.errstate(invalid="ignore"):
        mean, share = (numpy.bincount(where, v, minlength=bins) / counts for v in (confidence, right.astype(float)))
    error = float(numpy.nansum(counts * numpy.abs(mean - share)) / max(len(confidence), 1))
    return Reliability(numpy.linspace(0, 1, bins + 1), counts, mean, share, error)


def covered(data: RunData, nodes: Integers) -> Mask:
    """Return whether the set or interval of each node holds its label, or all of its labels."""
    label, interval, sets = data.nodes.label[nodes], data.nodes.interval, data.nodes.sets
    found: Mask
    if interval is not None:
        found = (interval[nodes, 0] <= label) & (label <= interval[nodes, 1])
    elif data.kind == "labels":
        assert sets is not None
        found = numpy.all(sets[nodes] | (label <= 0), axis=1)
    else:
        assert sets is not None
        found = sets[nodes, label.astype(int)]
    return found


def coverage_by(groups: Integers, holds: Mask) -> Floats:
    """Return the share of each group, counted from 0, that is covered; NaN in empty groups."""
    with numpy.errstate(invalid="ignore"):
        return numpy.bincount(groups, holds.astype(float)) / numpy.bincount(groups)


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")
