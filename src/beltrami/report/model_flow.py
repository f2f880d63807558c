"""A trained model as a flow: its initial state, its states at given times, and its graph at each of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from beltrami.energy import dirichlet
from beltrami.flow import PolyakovFlow
from beltrami.graph import Edges
from beltrami.model import BLEND, Classifier, Evolution, Inputs
from beltrami.model.linear_diffusion import LinearDiffusion
from beltrami.predict.sensitivity import is_linear
from beltrami.scheme import Stats

CLOSE = 1e-6  # times nearer to each other, relative to the last one, are one time


@dataclass(frozen=True, eq=False)
class Segment:
    """The graph of the flow from ``start`` to ``stop`` and the state (n, d) at ``start``, where the flow was bound."""

    start: float
    stop: float
    mesh: Edges
    z: Tensor


@dataclass(frozen=True, eq=False)
class StatePath:
    """The states (len(times), n, d) of a flow at ``times``, and the segments of constant graph, in order."""

    times: tuple[float, ...]
    states: Tensor
    segments: tuple[Segment, ...]

    def segment_at(self, t: float) -> Segment:
        """Return the segment of a time; where two meet, the later one."""
        return next((each for each in reversed(self.segments) if each.start <= t), self.segments[0])

    def state_at(self, t: float) -> Tensor:
        """Return the state (n, d) at one of the times."""
        return self.states[self.times.index(t)]


@dataclass(frozen=True, eq=False)
class ModelFlow:
    """The flow of a trained model from ``z0`` (n, d) to the terminal ``time``, and the decoder of its states.

    ``positions`` is the number of positional channels, which come first.
    """

    evolution: Evolution
    z0: Tensor
    edges: Edges
    decoder: Callable[[Tensor], Tensor]
    time: float
    positions: int = 0

    @staticmethod
    @torch.no_grad()
    def of(model: Classifier, inputs: Inputs, *, time: float) -> "ModelFlow | None":
        """Return the flow of a model that stops at ``time``; None for a model without a flow."""
        model.eval()
        if time <= 0:
            return None
        if isinstance(model, LinearDiffusion):
            return ModelFlow(model.evolution, model.encoder(inputs.x), inputs.edges, lambda z: z, time)
        if not isinstance(model, BLEND):
            return None
        positions = 0
        if model.phi is not None:
            positions = [part for part in model.phi.modules() if isinstance(part, nn.Linear)][-1].out_features
        return ModelFlow(model.evolution, model.encode(inputs), inputs.edges, model.xi, time, positions)

    @property
    def frozen(self) -> bool:
        """Whether the weights are those at the start of a segment."""
        return is_linear(self.evolution.flow)

    @torch.no_grad()
    def solve(self) -> Stats:
        """Return the statistics of a solve from 0 to the terminal time."""
        return Stats.total(self.evolution.trajectory(self.z0, self.edges, (0.0, self.time)).solves)

    @torch.no_grad()
    def path(self, times: Sequence[float]) -> StatePath:
        """Return the states at ``times``, at the terminal time, and where the graph changes; the last may be later than
        the terminal time."""
        last = max(*times, self.time)
        starts = [start for start, _ in self.evolution.intervals((0.0, last))]
        needed = {0.0, self.time, last, *starts}
        kept = sorted(needed)
        for t in times:
            if min(abs(t - other) for other in kept) > CLOSE * last:
                kept.append(t)
        ts = tuple(sorted(kept))
        found = self.evolution.trajectory(self.z0, self.edges, ts)
        parts = zip(self.evolution.intervals((0.0, last)), found.meshes, strict=True)
        segments = [Segment(start, stop, mesh, found.ys[ts.index(start)]) for (start, stop), mesh in parts]
        return StatePath(ts, found.ys, tuple(segments))

    @torch.no_grad()
    def weights(self, segment: Segment, z: Tensor) -> Tensor:
        """Return the diffusivities (m,) on the graph of a segment, for the state ``z`` within it."""
        weights: Tensor = self.evolution.flow.diffusivity(segment.z if self.frozen else z, segment.mesh)
        return weights

    @torch.no_grad()
    def energies(self, path: StatePath, times: Sequence[float]) -> dict[str, list[float]]:
        """Return energies of the state at some times of a path, by name.

        The Dirichlet energy is that on the input graph. The energy with the flow's weights has the diffusivities as
        weights. A gradient flow has the energy that it decreases in its place.
        """
        flow = self.evolution.flow
        plain: list[float] = []
        own: list[float] = []
        for t in times:
            z, segment = path.state_at(t), path.segment_at(t)
            plain.append(float(dirichlet(z, self.edges).sum()))
            if isinstance(flow, PolyakovFlow):
                own.append(float(flow.bind(segment.z, segment.mesh, start=self.z0).energy(z)))
            else:
                own.append(float(dirichlet(z, segment.mesh, weight=self.weights(segment, z)).sum()))
        name = "Polyakov energy" if isinstance(flow, PolyakovFlow) else "Dirichlet energy with the flow's weights"
        return {"Dirichlet energy": plain, name: own}
