"""Evolution: a flow on a stencil by a scheme."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from beltrami.arguments import checked
from beltrami.errors import check_state
from beltrami.flow import Cost, Costed, Flow
from beltrami.graph import Edges, follow_features
from beltrami.scheme import Stats, TimeStepping, solve
from beltrami.stencil import Keep, Stencil

ROUND_OFF = 1e-9  # relative: a shorter last segment is merged into the one before
MAX_SEGMENTS = 10_000  # of a solve


@dataclass(frozen=True)
class Trajectory:
    """The states at the requested times (len(ts), n, d), the running cost (zero without any), and for each segment its
    graph and the statistics of its solve."""

    ys: Tensor
    cost: Tensor
    meshes: tuple[Edges, ...]
    solves: tuple[Stats, ...]

    @property
    def z(self) -> Tensor:
        """The last state, (n, d)."""
        return self.ys[-1]


@checked
class Evolution(nn.Module):
    r"""Evolve joint coordinates, :math:`z(T) = z(0) + \int_0^T f(z(t)) dt`.

    With ``remesh`` the graph changes with the state, :math:`E'(t) = E(U(t))`: every ``remesh`` units of time the
    stencil is applied again and the flow continues on the new edges. With explicit Euler steps of that length this is
    eq. (9). Gradients flow through every segment; the choice of edges has none.

    ``time`` is T; ``stencil`` makes the graph from the state and the input graph, by default the latter; without
    ``remesh`` it is applied at z(0) only; ``costs`` are regularisers integrated along the path in training.
    """

    def __init__(
        self,
        flow: Flow,
        *,
        scheme: TimeStepping,
        time: float,
        stencil: Stencil | None = None,
        remesh: float | None = None,
        costs: Sequence[Cost] = (),
    ) -> None:
        super().__init__()
        if not 0 < time < float("inf"):
            raise ValueError(f"Evolution needs a positive, finite terminal `time`; got {time}.")
        if remesh is not None and not 0 < remesh < float("inf"):
            raise ValueError(f"Evolution needs a positive `remesh`; got {remesh}. Use None for a fixed graph.")
        self.flow, self.scheme, self.time, self.remesh = flow, scheme, time, remesh
        self._count_segments(time)
        self.stencil = Keep() if stencil is None else stencil
        self.costs = tuple(costs)

    @property
    def synchronises(self) -> bool:
        """Whether a solve in training synchronises with the device; if not, it can be captured in a CUDA graph."""
        changes = self.stencil.synchronises or self.remesh is not None
        return self.scheme.synchronises or changes or bool(self.costs)

    @property
    def summary(self) -> str:
        """The flow, stencil, scheme and time in one line."""
        flow = f"flow={type(self.flow).__name__}({type(self.flow.diffusivity).__name__})"
        return ", ".join([flow, *self.extra_repr().splitlines()])

    def extra_repr(self) -> str:
        times = f"time={self.time!r}" + ("" if self.remesh is None else f", remesh={self.remesh!r}")
        costs = [f"costs={self.costs!r}"] if self.costs else []
        return "\n".join([f"stencil={self.stencil!r}", f"scheme={self.scheme!r}", times, *costs])

    @checked
    def forward(self, z: Tensor, edges: Edges) -> Tensor:
        check_state(z, num_nodes=edges.num_nodes)
        return self.evolve(z, edges).z

    def evolve(self, z: Tensor, edges: Edges) -> Trajectory:
        """Return z(0) and z(T) with the running costs (in training) and the statistics of the solve."""
        return self._run(z, edges, (0.0, self.time), self.costs if self.training else ())

    def trajectory(self, z: Tensor, edges: Edges, ts: Sequence[float]) -> Trajectory:
        """Return the states at ``ts``, which increase from the starting time."""
        return self._run(z, edges, tuple(ts), ())

    def mesh(self, z: Tensor, edges: Edges) -> Edges:
        """Return the graph of the stencil; edges that it keeps keep their features, others have features zero."""
        return follow_features(self.stencil(z, edges), edges)

    def _run(self, z: Tensor, edges: Edges, ts: tuple[float, ...], costs: Sequence[Cost]) -> Trajectory:
        start, scheme, cost = z, self.scheme, z.new_zeros(())
        ys, meshes = [z[None]], []
        solves: list[Stats] = []
        for t0, t1 in self.intervals(ts):
            scheme = scheme.resume(solves[-1]) if solves else scheme
            mesh = self.mesh(z, edges)
            f, times = self.flow.bind(z, mesh, start=start), (t0, *(t for t in ts if t0 < t < t1), t1)
            if costs:
                costed = Costed(f, costs, z)
                solution = solve(costed, costed.join(z), times, scheme, costed.tensors)
                along, running = costed.split(solution.ys)
                cost = cost + running[-1]
            else:
                solution = solve(f, z, times, scheme, f.tensors)
                along = solution.ys
            z = along[-1]
            ys.append(along[1:] if t1 in ts else along[1:-1])
            meshes.append(mesh)
            solves.append(solution.stats)
        states = along if len(meshes) == 1 else torch.cat(ys)  # without a copy where one segment has them all
        return Trajectory(states, cost, tuple(meshes), tuple(solves))

    def intervals(self, ts: tuple[float, ...]) -> Iterator[tuple[float, float]]:
        """Yield the segments from the first to the last of ``ts``, each ``remesh`` long except perhaps the last."""
        if self.remesh is None or len(ts) < 2:
            yield ts[0], ts[-1]
            return
        count = self._count_segments(ts[-1] - ts[0])
        yield from pairwise((*(ts[0] + k * self.remesh for k in range(count + 1)), ts[-1]))

    def _count_segments(self, time: float) -> int:
        """Return how many segments of full length come before the last one; too many are refused."""
        count = 0.0 if self.remesh is None else time / self.remesh * (1 - ROUND_OFF)
        if not count < MAX_SEGMENTS:
            raise ValueError(
                f"Evolution would rebuild its graph {count:.4g} times until t={time:g}, and at most {MAX_SEGMENTS} "
                f"times are allowed: choose a `remesh` of at least {time / MAX_SEGMENTS:.2g}."
            )
        return int(count)
