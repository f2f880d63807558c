"""A still picture of a flow: the nodes at its first, a middle and its last time, as SVG."""

from typing import Any

import numpy
from numpy.typing import NDArray

from beltrami.report.figure_axes import number_text
from beltrami.report.markup import text
from beltrami.report.run_data import FlowData, RunData

SIDE, GAP, HEAD = 300.0, 20.0, 24.0  # of a panel, between panels, and above them
MOST_NODES, MOST_EDGES = 1_500, 400  # that are drawn
COLOURS = 12  # classes s0 ... s11 of the style sheet
SEED = 0  # of the sample of nodes
MARGIN = 0.03


def still_picture(data: RunData, flow: FlowData) -> str:
    """Return the picture: a panel for each of up to three times, nodes in the colours of their classes."""
    n, last = flow.positions.shape[1], len(flow.times) - 1
    drawn = numpy.arange(n)
    if n > MOST_NODES:
        drawn = numpy.sort(numpy.random.RandomState(SEED).choice(n, MOST_NODES, replace=False))
    groups = _groups(data, flow)
    panels = sorted({0, (last + 1) // 2, last})
    width = len(panels) * (SIDE + GAP) - GAP
    parts = [_panel(flow, k, place * (SIDE + GAP), drawn, groups) for place, k in enumerate(panels)]
    times = ", ".join(number_text(float(flow.times[k])) for k in panels)
    says = f"The nodes of the graph at the times {times}. {flow.projection}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {SIDE + HEAD:g}" role="img" '
        f'aria-labelledby="still-title still-desc"><title id="still-title">The flow at {len(panels)} times</title>'
        f'<desc id="still-desc">{text(says)}</desc>\n' + "\n".join(parts) + "\n</svg>"
    )


def _panel(flow: FlowData, frame: int, left: float, drawn: NDArray[Any], groups: NDArray[Any]) -> str:
    """Return the nodes and the strongest edges at a key frame."""
    low, high = flow.positions.min((0, 1)), flow.positions.max((0, 1))
    if flow.disc:
        low, high = numpy.full(2, -1.0), numpy.ones(2)
    unit = (1 - 2 * MARGIN) * SIDE / (float((high - low).max()) or 1.0)
    points = (flow.positions[frame] - (low + high) / 2) * (unit, -unit) + (left + SIDE / 2, HEAD + SIDE / 2)
    parts = [
        f'<text x="{left + SIDE / 2:g}" y="14" text-anchor="middle">t = {number_text(float(flow.times[frame]))}</text>'
    ]
    if flow.disc:
        parts.append(f'<circle class="circle" cx="{left + SIDE / 2:g}" cy="{HEAD + SIDE / 2:g}" r="{unit:g}"/>')
    mesh = next((each for each in flow.meshes if flow.times[frame] < each.stop), None)
    if mesh is None and flow.meshes:
        mesh = flow.meshes[-1]
    if mesh is not None and len(mesh.pairs):
        ends = points[mesh.pairs[:MOST_EDGES]]
        lines = "".join(f"M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}" for a, b in ends)
        parts.append(f'<path class="edges" d="{lines}"/>')
    for group in numpy.unique(groups[drawn]):
        dots = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points[drawn[groups[drawn] == group]])
        style = "unknown" if group < 0 else f"s{group % COLOURS}"
        parts.append(f'<path class="dots {style}" d="{dots}"/>')
    return "\n".join(parts)


def _groups(data: RunData, flow: FlowData) -> NDArray[Any]:
    """Return the colour of each node: of its class, else of the predicted one; of a number by its place in order."""
    every = slice(None) if flow.nodes is None else flow.nodes
    label, predicted = data.nodes.label[every], data.nodes.predicted[every]
    if data.kind == "classes":
        return numpy.where(label >= 0, label, predicted)
    if data.kind == "labels":
        return numpy.where(predicted.any(axis=1), predicted.argmax(axis=1), -1)
    return numpy.zeros(len(predicted), dtype=numpy.int64)
