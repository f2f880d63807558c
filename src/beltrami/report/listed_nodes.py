"""Which nodes a report lists: the most uncertain predictions, and the labels that are most likely wrong."""

import numpy
from numpy.typing import NDArray

from beltrami.report.run_data import PARTS, Floats, Integers, RunData

Mask = NDArray[numpy.bool_]
LISTED = 20  # nodes of each kind


def uncertain(data: RunData, count: int = LISTED) -> Integers:
    """Return the nodes with the least certain predictions, the least certain first, at most ``count``.

    They are nodes whose labels the models did not see: test nodes and those without a label; if there are none, those
    of validation and calibration. The certainty of a class is its probability; that of several labels is the smallest
    distance of a probability from 1/2. Numbers have none, and give no nodes.
    """
    nodes, p = data.nodes, data.nodes.probabilities
    if p is None:
        return numpy.zeros(0, dtype=numpy.int64)
    asked = numpy.isin(nodes.part, (PARTS.index("other"), PARTS.index("test")))
    if not asked.any():
        asked = nodes.part != PARTS.index("train")
    if nodes.reached is not None:
        asked &= nodes.reached
    certainty = p.max(1) if data.kind == "classes" else numpy.abs(p - 0.5).min(1)
    return _lowest(certainty, asked, count)


def suspicious(data: RunData, count: int = LISTED) -> Integers:
    """Return the labelled nodes whose labels are most likely wrong, the likeliest first, at most ``count``.

    A node is listed if the prediction differs from its label, by the lowest probability of its own label; for several
    labels, that of the label that is least likely as it was given; for numbers, by the largest error. The models were
    fitted to the labels of training nodes, so that wrong labels among these are partly learned and easily missed: that
    the prediction differs from such a label says more than at other nodes. At validation, test and calibration nodes a
    wrong prediction is often the model's fault, not the label's.
    """
    nodes, label, p = data.nodes, data.nodes.label, data.nodes.probabilities
    known: Mask
    if p is None:
        error = numpy.abs(nodes.predicted - label)
        return _lowest(-error, error > 0, count)
    if data.kind == "classes":
        known, differs = label >= 0, label != nodes.predicted
        own = numpy.take_along_axis(p, numpy.maximum(label, 0)[:, None], axis=1)[:, 0]
    else:
        known, differs = numpy.all(label >= 0, axis=1), numpy.any(label != nodes.predicted, axis=1)
        own = numpy.where(label > 0, p, 1 - p).min(1)
    if nodes.reached is not None:
        known = known & nodes.reached
    return _lowest(own, known & differs, count)


def _lowest(values: Floats, among: Mask, count: int) -> Integers:
    """Return the nodes of a mask with the lowest values, ascending; equal values in the order of the nodes."""
    nodes = numpy.flatnonzero(among)
    return nodes[numpy.argsort(values[nodes], kind="stable")[:count]]
