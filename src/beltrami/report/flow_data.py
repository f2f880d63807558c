"""The flow of a trained model as data: scores and energies along time, and the key frames of the moving picture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor

from beltrami.model import Classifier, Inputs
from beltrami.report.mesh_data import MOST_PAIRS, mesh_of, on_nodes, strongest
from beltrami.report.model_flow import ModelFlow, Segment, StatePath
from beltrami.report.projection import choose_projection
from beltrami.report.run_data import AlongTime, Floats, FlowData, Integers, Mesh
from beltrami.train import Task

TIMES, FINE, KEY_FRAMES = 33, 64, 16
MOST_NUMBERS = 2**27  # of all states that are held at once
MOST_NODES = 20_000  # that are drawn
MOST_SEGMENTS = 64  # that are drawn
SEED = 0  # of the sample of nodes


@dataclass(frozen=True, eq=False)
class ShownModel:
    """The model whose flow is drawn, and how its outputs are read.

    Args:
        time: the time at which its flow stops; ``last`` is the last time at which validation looked.
        y: the targets as the task takes them, any value where they are unknown.
        masks: (n,) the nodes of each part of the split by name.
        temperature: divides the outputs. For numbers, output times ``scale`` plus ``centre`` is the prediction.
    """

    model: Classifier
    inputs: Inputs
    time: float
    last: float
    task: Task
    kind: str
    names: Sequence[str]
    y: Tensor
    masks: Mapping[str, Tensor]
    temperature: float = 1.0
    centre: float = 0.0
    scale: float = 1.0

    def flow(self) -> ModelFlow | None:
        """Return the flow of the model; None if it has none."""
        return ModelFlow.of(self.model, self.inputs, time=self.time)

    def scores(self, outputs: Tensor) -> dict[str, float]:
        """Return the score of outputs (n, outputs) by part of the split; an error in the units of the label."""
        factor = -self.scale if self.kind == "numbers" else 1.0
        parts = {name: mask for name, mask in self.masks.items() if bool(mask.any())}
        return {name: factor * float(self.task.metric(outputs[mask], self.y[mask])) for name, mask in parts.items()}

    def read(self, outputs: Tensor) -> tuple[NDArray[numpy.generic], Floats | None]:
        """Return the class, the likeliest label or the number at each node, and the probability of the first two."""
        if self.kind == "numbers":
            return (outputs[:, 0] * self.scale + self.centre).cpu().numpy(), None
        confidence, predicted = self.task.probabilities(outputs / self.temperature).max(-1)
        return predicted.cpu().numpy().astype(numpy.int32), confidence.cpu().numpy()


@torch.no_grad()
def scores_along(shown: ShownModel) -> AlongTime | None:
    """Return the scores along the time of a model that has time but no flow to draw; None for one without time."""
    if shown.time <= 0:
        return None
    times = sorted({*_grid(TIMES, shown.last, shown.time), shown.time})
    outputs = shown.model.logits_along(shown.inputs, times)
    return AlongTime(numpy.array(times), _columns([shown.scores(each) for each in outputs]), {}, shown.time)


def pictures(shown: ShownModel, flow: ModelFlow) -> tuple[AlongTime, FlowData, Floats, list[str]]:
    """Return scores and energies along time, the key frames, the diffusivities (m,) at time 0, and notes."""
    share = min(1.0, MOST_NUMBERS / (flow.z0.numel() * (TIMES + FINE)))
    grid = _grid(max(9, int(TIMES * share)), shown.last, shown.time)
    fine = max(KEY_FRAMES, int(FINE * share))
    path = flow.path((*grid, *(flow.time * (k / fine) ** 2 for k in range(fine + 1))))
    weights = flow.weights(path.segments[0], flow.z0).cpu().numpy()
    frames, notes = _frames(shown, flow, path)
    return _along(shown, flow, path, grid), frames, weights, notes


@torch.no_grad()
def _along(shown: ShownModel, flow: ModelFlow, path: StatePath, grid: Sequence[float]) -> AlongTime:
    known = [t for t in path.times if t in grid or t == shown.time]
    scores = [shown.scores(flow.decoder(path.state_at(t))) for t in known]
    energies = {name: numpy.array(values) for name, values in flow.energies(path, known).items()}
    return AlongTime(numpy.array(known), _columns(scores), energies, shown.time)


@torch.no_grad()
def _frames(shown: ShownModel, flow: ModelFlow, path: StatePath) -> tuple[FlowData, list[str]]:
    """Return the key frames, and notes about what is left out of them."""
    n, notes = flow.edges.num_nodes, []
    project = choose_projection(flow, path.state_at(flow.time))
    candidates = [t for t in path.times if t <= flow.time]
    nodes: Integers | None = None
    if n > MOST_NODES:
        nodes = numpy.sort(numpy.random.RandomState(SEED).choice(n, MOST_NODES, replace=False))
        notes.append(f"The picture of the flow shows a random sample of {MOST_NODES:,} of the {n:,} nodes.")
    drawn = slice(None) if nodes is None else nodes
    points = numpy.stack([project(path.state_at(t)).cpu().numpy()[drawn] for t in candidates])
    chosen = key_frames(points, KEY_FRAMES)
    outputs = [shown.read(flow.decoder(path.state_at(candidates[k]))) for k in chosen]
    confidence = None if shown.kind == "numbers" else numpy.stack([p for _, p in outputs if p is not None])[:, drawn]
    meshes, left_out = _meshes(flow, path, nodes)
    frames = FlowData(
        times=numpy.array([candidates[k] for k in chosen]),
        positions=points[chosen].astype(numpy.float32),
        axes=project.axes,
        projection=project.says,
        disc=project.disc,
        predicted=numpy.stack([each for each, _ in outputs])[:, drawn],
        confidence=confidence,
        meshes=meshes,
        nodes=nodes,
    )
    return frames, notes + left_out


def key_frames(points: Floats, count: int) -> list[int]:
    """Return which of the times of ``points`` (times, n, 2) to show, at most ``count``, with the first and the last,
    such that the mean displacements between them are about equal."""
    steps = numpy.linalg.norm(numpy.diff(points, axis=0), axis=-1).mean(1)
    moved = numpy.concatenate(([0.0], numpy.cumsum(steps)))
    if moved[-1] == 0:
        moved = numpy.arange(len(points), dtype=float)
    wanted = numpy.linspace(0, moved[-1], count)
    chosen = {0, len(points) - 1, *(int(k) for k in numpy.abs(moved[:, None] - wanted).argmin(0))}
    while len(chosen) < min(count, len(points)):  # divide the largest step that can be divided
        order = sorted(chosen)
        gaps = [(moved[b] - moved[a], a, b) for a, b in pairwise(order) if b - a > 1]
        _, a, b = max(gaps)
        chosen.add(a + 1 + int(numpy.abs(moved[a + 1 : b] - (moved[a] + moved[b]) / 2).argmin()))
    return sorted(chosen)


def _meshes(flow: ModelFlow, path: StatePath, nodes: Integers | None) -> tuple[list[Mesh], list[str]]:
    """Return the graph of every segment up to the terminal time, with the strongest of its pairs."""
    segments, notes = [each for each in path.segments if each.start < flow.time], []
    if len(segments) > MOST_SEGMENTS:
        every = -(-len(segments) // MOST_SEGMENTS)
        notes.append(
            f"The graph is rebuilt {len(segments) - 1:,} times; the picture shows one in {every} of its graphs."
        )
        segments = segments[::every]
    stops = [*(each.start for each in segments[1:]), flow.time]
    meshes = [_mesh(flow, path, each, stop, nodes) for each, stop in zip(segments, stops, strict=True)]
    pairs, most = sum(len(mesh.pairs) for mesh in meshes), MOST_PAIRS // len(meshes)
    if pairs > MOST_PAIRS:
        meshes = [strongest(mesh, most) for mesh in meshes]
        shown = sum(len(mesh.pairs) for mesh in meshes)
        notes.append(f"The picture of the flow shows the {shown:,} strongest of its {pairs:,} edges.")
    return meshes, notes


def _mesh(flow: ModelFlow, path: StatePath, segment: Segment, stop: float, nodes: Integers | None) -> Mesh:
    """Return the graph of a segment, drawn until ``stop``; weights at the end are those of its last state."""
    end = path.state_at(min(segment.stop, stop))
    weights = torch.stack((flow.weights(segment, segment.z), flow.weights(segment, end)), dim=1)
    mesh = mesh_of(segment.mesh, weights.cpu().numpy().astype(numpy.float32), start=segment.start, stop=stop)
    return mesh if nodes is None else on_nodes(mesh, nodes, flow.edges.num_nodes)


def _grid(count: int, last: float, time: float) -> tuple[float, ...]:
    """Return times from 0 to the later of ``last`` and ``time``."""
    end = max(last, time)
    return tuple(end * k / (count - 1) for k in range(count))


def _columns(rows: Sequence[Mapping[str, float]]) -> dict[str, Floats]:
    return {name: numpy.array([row[name] for row in rows]) for name in rows[0]}
