"""Evolution: a flow on a stencil by a scheme."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from beltrami.flow import Cost, Costed, Flow
from beltrami.graph import Edges
from beltrami.scheme import Solution, Stats, TimeStepping, solve
from beltrami.stencil import Keep, Stencil


@dataclass(frozen=True)
class Evolved:
    """Where the flow arrived: the state z(T), its running costs (a scalar, zero without any), what the solve took."""

    z: Tensor
    cost: Tensor
    stats: Stats


class Evolution(nn.Module):
    r"""Evolve joint coordinates, :math:`z(T) = z(0) + \int_0^T f(z(t)) dt`.

    Args:
        flow: the equation.
        scheme: its time stepping.
        time: terminal time T.
        stencil: its graph, from the input graph.
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
        costs: Sequence[Cost] = (),
    ) -> None:
        super().__init__()
        if not 0 < time < float("inf"):
            raise ValueError(f"Evolution needs a positive, finite terminal `time`; got {time}: no negative time here.")
        self.flow, self.scheme, self.time = flow, scheme, time
        self.stencil = Keep() if stencil is None else stencil
        self.costs = tuple(costs)

    def forward(self, z: Tensor, edges: Edges) -> Tensor:
        return self.evolve(z, edges).z

    def evolve(self, z: Tensor, edges: Edges) -> Evolved:
        """z(T) with its running costs (while training) and the statistics of the solve."""
        f = self.flow.bind(z, self.stencil(z, edges))
        if not (self.training and self.costs):
            solution = solve(f, z, (0.0, self.time), self.scheme, f.tensors)
            return Evolved(solution.ys[-1], z.new_zeros(()), solution.stats)
        costed = Costed(f, self.costs, z)
        solution = solve(costed, costed.join(z), (0.0, self.time), self.scheme, costed.tensors)
        end, cost = costed.split(solution.ys[-1])
        return Evolved(end, cost, solution.stats)

    def trajectory(self, z: Tensor, edges: Edges, ts: Sequence[float]) -> Solution:
        """The state at each of ``ts``, increasing from the starting time: ys (len(ts), n, d)."""
        f = self.flow.bind(z, self.stencil(z, edges))
        return solve(f, z, tuple(ts), self.scheme, f.tensors)

    @torch.no_grad()
    def weights(self, z: Tensor, edges: Edges) -> tuple[Tensor, Edges]:
        """The diffusivities a at the state ``z``, (m,), and the stencil's edges they lie on."""
        stencil = self.stencil(z, edges)
        return self.flow.diffusivity(z, stencil), stencil
