"""The flow of a run as data for the viewer of a page: arrays of 16 bits in base64, and the facts of each node."""

import base64
from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from beltrami.report.class_scores import known_labels
from beltrami.report.node_tables import confidence, node_label
from beltrami.report.run_data import PARTS, SCORE_ORDER, FlowData, Integers, Mesh, Reasons, RunData, Share

MOST = 2**16 - 1  # of an unsigned number of 16 bits
SIGNED = 2**15 - 1
NEW, GONE = 1, 2  # bits of a pair: it is not in the graph before, or not in the one after
MARGIN = 0.02  # around the nodes, relative to the longer side of the picture
STRONG = 0.95  # the quantile of strengths at which an edge is drawn darkest


def viewer_data(data: RunData, flow: FlowData, *, explain_at: str = "") -> dict[str, Any]:
    """Return all that the viewer reads, as JSON values.

    Args:
        explain_at: where a server explains predictions, as ``explain_at`` followed by the number of the node; empty for
            a page from a file, which has the explanations of a few nodes.
    """
    drawn = numpy.arange(len(data.nodes.ids)) if flow.nodes is None else flow.nodes
    assert len(drawn) <= MOST + 1  # `flow_data` draws fewer
    centre, half = _square(flow)
    positions = (flow.positions.astype(float) - centre) / (2 * half) + 0.5
    pairs, weights = _joined([mesh.pairs for mesh in flow.meshes], (0, 2)), _weights(flow.meshes)
    most, strong = _weight_scale(weights)
    return {
        "times": [float(t) for t in flow.times],
        "axes": list(flow.axes),
        "centre": [float(c) for c in centre],
        "half": half,
        "disc": flow.disc,
        "kind": data.kind,
        "names": list(data.names),
        "metric": data.metric,
        "folder": data.folder,
        "title": data.title,
        "explainAt": explain_at,
        "nodes": _facts(data, drawn),
        "positions": _packed(_unsigned(positions)),
        "values": _packed(_values(data, flow)),
        "range": _range(data, flow),
        "meshes": _ranges(flow.meshes),
        "pairs": _packed(pairs.astype(numpy.uint16)),
        "weights": _packed(numpy.rint(weights / most * SIGNED).astype(numpy.int16)),
        "weightTimes": weights.shape[-1],
        "largestWeight": most,
        "strongWeight": strong,
        "changes": _packed(_changes(flow.meshes)),
        "score": _score(data),
        "reasons": {str(node): reasons_data(data, each) for node, each in data.reasons.items()},
    }


def reasons_data(data: RunData, reasons: Reasons) -> dict[str, Any]:
    """Return an explanation as JSON values: names of nodes, their labels and their shares."""
    ids = data.nodes.ids

    def node(share: Share) -> list[Any]:
        return [share.node, ids[share.node], node_label(data, share.node), share.share]

    def edge(share: Share, to: int) -> list[Any]:
        return [share.node, ids[share.node], to, ids[to], share.share]

    return {
        "predicted": reasons.predicted,
        "other": reasons.other,
        "margin": reasons.margin,
        "method": reasons.method,
        "nodes": [node(share) for share in reasons.nodes],
        "edges": [edge(share, share.to) for share in reasons.edges if share.to is not None],
    }


def _square(flow: FlowData) -> tuple[NDArray[Any], float]:
    """Return the centre and half the side of the square that holds all nodes at all times, with a margin."""
    low, high = flow.positions.min((0, 1)).astype(float), flow.positions.max((0, 1)).astype(float)
    if flow.disc:
        low, high = numpy.full(2, -1.0), numpy.ones(2)
    return (low + high) / 2, (0.5 + MARGIN) * (float((high - low).max()) or 1.0)


def _facts(data: RunData, drawn: Integers) -> dict[str, Any]:
    """Return the columns of the nodes that are drawn. A label, a prediction or a set is a class, a list of labels or a
    number, None where it is not known."""
    nodes, known = data.nodes, known_labels(data)
    reached = numpy.ones(len(known), dtype=bool) if nodes.reached is None else nodes.reached
    found: dict[str, Any] = {
        "number": drawn.tolist(),
        "id": [nodes.ids[k] for k in drawn],
        "part": [int(nodes.part[k]) for k in drawn],
        "parts": list(PARTS),
        "degree": [int(nodes.degree[k]) for k in drawn],
        "label": [_value(data, nodes.label[k]) if known[k] else None for k in drawn],
        "predicted": [_value(data, nodes.predicted[k]) if reached[k] else None for k in drawn],
    }
    if nodes.probabilities is not None:
        found["confidence"] = [round(confidence(data, int(k)), 4) for k in drawn]
    if nodes.sets is not None:
        found["set"] = [numpy.flatnonzero(nodes.sets[k]).tolist() for k in drawn]
    if nodes.interval is not None:
        found["interval"] = [[float(end) for end in nodes.interval[k]] for k in drawn]
    return found


def _value(data: RunData, value: Any) -> int | float | list[int]:
    if data.kind == "labels":
        return [int(k) for k in numpy.flatnonzero(value > 0)]
    return float(value) if data.kind == "numbers" else int(value)


def _range(data: RunData, flow: FlowData) -> list[float]:
    """Return the smallest and the largest number among labels and predictions; 0 and 1 for classes."""
    if data.kind != "numbers":
        return [0.0, 1.0]
    both = numpy.concatenate((flow.predicted.ravel(), data.nodes.label.astype(float)))
    low, high = float(numpy.nanmin(both)), float(numpy.nanmax(both))
    return [low, high if high > low else low + 1.0]


def _values(data: RunData, flow: FlowData) -> NDArray[numpy.uint16]:
    """Return the prediction and its confidence at each time and node, (K, n, 2)."""
    if flow.confidence is None:
        low, high = _range(data, flow)
        predicted = _unsigned((flow.predicted.astype(float) - low) / (high - low))
        return numpy.stack((predicted, numpy.zeros_like(predicted)), axis=-1)
    return numpy.stack((flow.predicted.astype(numpy.uint16), _unsigned(flow.confidence)), axis=-1)


def _score(data: RunData) -> dict[str, Any] | None:
    """Return the score over time that is shown beside the time, of the first part of the split that is known."""
    if data.along is None:
        return None
    part = next((name for name in SCORE_ORDER if name in data.along.accuracy), None)
    if part is None:
        return None
    values = [float(value) for value in data.along.accuracy[part]]
    return {"name": f"{part} {data.metric}", "times": [float(t) for t in data.along.times], "values": values}


def _ranges(meshes: Sequence[Mesh]) -> list[dict[str, Any]]:
    """Return the times of each graph, and where its pairs are among those of all graphs."""
    counts = [len(mesh.pairs) for mesh in meshes]
    firsts = numpy.cumsum([0, *counts])
    return [
        {"start": float(mesh.start), "stop": float(mesh.stop), "first": int(first), "count": count}
        for mesh, first, count in zip(meshes, firsts[:-1], counts, strict=True)
    ]


def _weights(meshes: Sequence[Mesh]) -> NDArray[Any]:
    """Return the weights of all pairs, (m, 2, 2), or (m, 2, 1) where those of no pair change in time."""
    weights = _joined([mesh.weights for mesh in meshes], (0, 2, 2))
    return weights[..., :1] if numpy.array_equal(weights[..., 0], weights[..., 1]) else weights


def _weight_scale(weights: NDArray[Any]) -> tuple[float, float]:
    """Return the largest absolute weight, and the one at which an edge is drawn darkest."""
    strengths = numpy.abs(weights).max((1, 2), initial=0.0)
    most = float(strengths.max(initial=0.0)) or 1.0
    return most, (float(numpy.quantile(strengths, STRONG)) if len(strengths) else most) or most


def _changes(meshes: Sequence[Mesh]) -> NDArray[numpy.uint8]:
    """Return for each pair of each graph whether it is new there, and whether it is gone in the next graph."""
    keys = [mesh.pairs[:, 0].astype(numpy.int64) * (MOST + 1) + mesh.pairs[:, 1] for mesh in meshes]
    found = [numpy.zeros(len(each), dtype=numpy.uint8) for each in keys]
    for k in range(1, len(keys)):
        found[k][~numpy.isin(keys[k], keys[k - 1])] |= NEW
        found[k - 1][~numpy.isin(keys[k - 1], keys[k])] |= GONE
    return _joined(found, (0,)).astype(numpy.uint8)


def _joined(parts: Sequence[NDArray[Any]], empty: tuple[int, ...]) -> NDArray[Any]:
    return numpy.concatenate(parts) if parts else numpy.zeros(empty)


def _unsigned(values: NDArray[Any]) -> NDArray[numpy.uint16]:
    """Return numbers from 0 to 1 as 16 bits."""
    found: NDArray[numpy.uint16] = numpy.rint(numpy.clip(values.astype(float), 0, 1) * MOST).astype(numpy.uint16)
    return found


def _packed(values: NDArray[Any]) -> str:
    """Return the bytes of an array, little-endian, in base64."""
    return base64.b64encode(values.astype(values.dtype.newbyteorder("<")).tobytes()).decode()
