"""Tables of the nodes that deserve a look, and the explanations of predictions, as HTML."""

from collections.abc import Sequence
from typing import Any

import numpy

from beltrami.predict.predictions import NO_LABEL, join_names
from beltrami.report.class_scores import known_labels
from beltrami.report.figure_axes import number_text
from beltrami.report.markup import table, text
from beltrami.report.run_data import PARTS, Reasons, RunData, Share

COUNT = 20  # nodes in a table
UNKNOWN, NONE = "unknown", "no label"


def node_tables(data: RunData, *, count: int = COUNT) -> str:
    """Return the tables of the most uncertain nodes and of those that are most likely mislabelled."""
    from beltrami.report.listed_nodes import suspicious, uncertain

    found, wrong = "", "Nodes whose label the model most confidently contradicts"
    if data.kind == "numbers":
        wrong = "Nodes with the largest differences between prediction and label"
    for caption, nodes, key in (
        ("Nodes with the most uncertain predictions", uncertain(data, count).tolist(), "uncertain"),
        (wrong, suspicious(data, count).tolist(), "suspicious"),
    ):
        if nodes:
            found += node_table(data, nodes, caption=caption, key=key)
    return found


def node_table(data: RunData, nodes: Sequence[int], *, caption: str, key: str) -> str:
    """Return a table of nodes with their labels and predictions."""
    certainty = {"numbers": "difference", "labels": "least certain label, %", "classes": "probability, %"}
    head = ("node", "label", "predicted", certainty[data.kind], "part", "neighbours")
    rows: list[tuple[Any, ...]] = []
    for node in nodes:
        part, degree = PARTS[int(data.nodes.part[node])], int(data.nodes.degree[node])
        label, predicted = node_label(data, node), node_prediction(data, node)
        if data.kind == "numbers":
            true, found = float(data.nodes.label[node]), float(data.nodes.predicted[node])
            rows.append((data.nodes.ids[node], _known(true), found, _known(found - true), part, degree))
        else:
            rows.append((data.nodes.ids[node], label, predicted, round(100 * confidence(data, node), 1), part, degree))
    return table(caption, head, rows, key=key)


def node_label(data: RunData, node: int) -> str:
    """Return the label of a node as text."""
    if not known_labels(data)[node]:
        return UNKNOWN
    return _in_words(data, data.nodes.label[node])


def node_prediction(data: RunData, node: int) -> str:
    """Return the prediction at a node as text."""
    if data.nodes.reached is not None and not data.nodes.reached[node]:
        return NO_LABEL
    return _in_words(data, data.nodes.predicted[node])


def confidence(data: RunData, node: int) -> float:
    """Return the probability of the predicted class; for labels, of the whole prediction at its least certain label."""
    if data.nodes.probabilities is None:
        return float("nan")
    p = data.nodes.probabilities[node].astype(float)
    if data.kind == "labels":
        return float(numpy.where(data.nodes.predicted[node] > 0, p, 1 - p).min())
    return float(p[int(data.nodes.predicted[node])])


def explanations(data: RunData) -> str:
    """Return the explanations of a run, each in an element that opens."""
    if not data.reasons:
        return ""
    blocks = "\n".join(explanation(data, reasons) for reasons in data.reasons.values())
    return f'<div class="list explanations"><h3>Where these predictions came from</h3>\n{blocks}\n</div>'


def explanation(data: RunData, reasons: Reasons) -> str:
    """Return an explanation: the margin, and the nodes and edges with the largest shares in it."""
    ids = data.nodes.ids
    words = (
        f"{reasons.predicted} over {reasons.other} by a margin of" if reasons.other else f"{reasons.predicted}, margin"
    )
    if data.kind == "numbers":
        words = f"{node_prediction(data, reasons.node)}, from the mean of the training labels"
    summary = f"<b>{text(ids[reasons.node])}</b>: {text(words)} {number_text(reasons.margin)}"
    nodes = [(ids[each.node], node_label(data, each.node), each.share, _part(each, reasons)) for each in reasons.nodes]
    edges = [
        (ids[each.node], ids[each.to], each.share, _part(each, reasons))
        for each in reasons.edges
        if each.to is not None
    ]
    tables = ""
    if nodes:
        tables += table("From nodes", ("node", "label", "share", "of margin, %"), nodes)
    if edges:
        tables += table("Along edges", ("from", "to", "share", "of margin, %"), edges)
    return (
        f'<details class="block"><summary>{summary}</summary><div class="inside"><p>{text(reasons.method)}</p>'
        f'<div class="figures">{tables}</div></div></details>'
    )


def _part(share: Share, reasons: Reasons) -> float | None:
    return round(100 * share.share / reasons.margin, 1) if reasons.margin else None


def _known(value: float) -> float | None:
    return value if numpy.isfinite(value) else None


def _in_words(data: RunData, value: Any) -> str:
    if data.kind == "numbers":
        return number_text(float(value))
    if data.kind == "labels":
        return join_names([name for name, present in zip(data.names, value, strict=True) if present > 0]) or NONE
    return data.names[int(value)]
