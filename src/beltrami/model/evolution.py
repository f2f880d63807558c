"""Evolution: a flow on a stencil by a scheme."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from beltrami.flow import Cost, Costed, Flow
from beltrami.graph import Edges
from beltrami.scheme import Solution, Stats, TimeStepping, solve
from beltrami.stencil import Keep, Stencil

SLIVER = 1e-9  # a last segment shorter than this share of the others is round-off


@dataclass(frozen=True)
class Segment:
    """A stretch of time on one mesh: from ``t0`` to ``t1`` on ``edges``."""

    t0: float
    t1: float
    edges: Edges


@dataclass(frozen=True)
class Evolved:
    """Where a flow passed.

    Args:
        ys: the states at the times asked for, (len(ts), n, d).
        cost: the running costs, a scalar; zero without any.
        segments: the meshes it moved on, in order; one where the mesh stood still.
        solves: the statistics of each segment's solve.
    """

    ys: Tensor
    cost: Tensor
    segments: tuple[Segment, ...]
    solves: tuple[Stats, ...]

    @property
    def z(self) -> Tensor:
        """The last state, (n, d)."""
        return self.ys[-1]

    @property
    def stats(self) -> Stats:
        """All solves together; backward counts are in once ``backward`` has run."""
        return Stats.total(self.solves)


class Evolution(nn.Module):
    r"""Evolve joint coordinates, :math:`z(T) = z(0) + \int_0^T f(z(t)) dt`.

    With ``remesh`` the mesh moves with the state, :math:`E'(t) = E(U(t))`: every ``remesh`` units of time the stencil
    is asked again and the flow goes on from there on the new edges. With explicit Euler steps of that length this is
    eq. (9). Gradients flow through every segment; the choice of edges itself has none.

    Args:
        flow: the equation.
        scheme: its time stepping.
        time: terminal time T.
        stencil: its graph, from the state and the input graph.
        remesh: time between two meshes; None for the one of z(0).
        costs: regularisers integrated along the path while training.

    Shapes:
        ``z`` (n, d) -> (n, d).
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
            raise ValueError(f"Evolution needs a positive, finite terminal `time`; got {time}: no negative time here.")
        if remesh is not None and not 0 < remesh < float("inf"):
            raise ValueError(f"Evolution needs a positive `remesh`; got {remesh}. For a mesh that stands still, None.")
        self.flow, self.scheme, self.time, self.remesh = flow, scheme, time, remesh
        self.stencil = Keep() if stencil is None else stencil
        self.costs = tuple(costs)

    def forward(self, z: Tensor, edges: Edges) -> Tensor:
        return self.evolve(z, edges).z

    def evolve(self, z: Tensor, edges: Edges) -> Evolved:
        """z(T) with its running costs (while training) and the statistics of the solve."""
        return self._run(z, edges, (0.0, self.time), self.costs if self.training else ())

    def trajectory(self, z: Tensor, edges: Edges, ts: Sequence[float]) -> Evolved:
        """The state at each of ``ts``, increasing from the starting time: ys (len(ts), n, d)."""
        return self._run(z, edges, tuple(ts), ())

    @torch.no_grad()
    def weights(self, z: Tensor, edges: Edges) -> tuple[Tensor, Edges]:
        """The diffusivities a at the state ``z``, (m,), and the stencil's edges they lie on."""
        mesh = self.stencil(z, edges)
        return self.flow.diffusivity(z, mesh), mesh

    def _run(self, z: Tensor, edges: Edges, ts: tuple[float, ...], costs: Sequence[Cost]) -> Evolved:
        start, scheme, cost = z, self.scheme, z.new_zeros(())
        ys, segments, solves = [z[None]], [], []
        for t0, t1 in self._stretches(ts):
            mesh = self.stencil(z, edges)
            asked = tuple(t for t in ts if t0 < t < t1)
            solution, spent = self._solve(z, mesh, (t0, *asked, t1), scheme, costs, start)
            z, cost = solution.ys[-1], cost + spent
            ys.append(solution.ys[1:] if t1 in ts else solution.ys[1:-1])
            segments.append(Segment(t0, t1, mesh))
            solves.append(solution.stats)
            scheme = scheme.resume(solution.stats)
        along = solution.ys if len(segments) == 1 else torch.cat(ys)  # one segment has them all, and a copy is a sweep
        return Evolved(along, cost, tuple(segments), tuple(solves))

    def _solve(
        self,
        z: Tensor,
        mesh: Edges,
        ts: tuple[float, ...],
        scheme: TimeStepping,
        costs: Sequence[Cost],
        start: Tensor,
    ) -> tuple[Solution, Tensor]:
        f = self.flow.bind(z, mesh, start=start)
        if not costs:
            return solve(f, z, ts, scheme, f.tensors), z.new_zeros(())
        costed = Costed(f, costs, z)
        solution = solve(costed, costed.join(z), ts, scheme, costed.tensors)
        ys, running = costed.split(solution.ys)
        return Solution(ys, solution.stats), running[-1]

    def _stretches(self, ts: tuple[float, ...]) -> Iterator[tuple[float, float]]:
        """The segments between the first and the last of ``ts``, each ``remesh`` long but perhaps the last."""
        if self.remesh is None or len(ts) < 2:
            yield ts[0], ts[-1]
            return
        count = int((ts[-1] - ts[0]) / self.remesh * (1 - SLIVER))
        yield from pairwise((*(ts[0] + k * self.remesh for k in range(count + 1)), ts[-1]))
