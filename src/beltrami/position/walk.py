"""Random walks: sampled walks, and their return probabilities as positions."""

from dataclasses import KW_ONLY, dataclass, field

import torch
from torch import Tensor

from beltrami.arguments import checked
from beltrami.graph import Edges, aggregate, collect
from beltrami.position.base import Encoding, Progress, check_counts, generator_on, reporter

MAX_STEPS = 2_000  # of a walk whose return probability is wanted
BLOCK = 512  # columns of the transition matrix's powers computed at once


@checked
@dataclass(frozen=True)
class ReturnProbabilities(Encoding):
    r"""The probabilities that a random walk is back at its start after 1, ..., ``steps`` steps.

    .. math:: u_i = (P_{ii}, (P^2)_{ii}, \dots, (P^{\text{steps}})_{ii}), \qquad P = D^{-1} A

    They describe a node's surroundings rather than its place: nodes related by a symmetry of the graph have the same
    position. A walk stays on a node that no edge leaves. Exact, in O(n m steps) time and O(n) memory: for graphs of
    some ten thousand nodes. ``progress`` receives the number of nodes done. -> (n, steps).
    """

    steps: int
    _: KW_ONLY
    progress: Progress | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_counts(self, "steps")
        if self.steps > MAX_STEPS:
            raise ValueError(f"ReturnProbabilities takes at most {MAX_STEPS} steps, one a channel; got {self.steps}.")

    @checked
    def __call__(self, edges: Edges, generator: torch.Generator | None = None) -> Tensor:
        w = torch.ones(edges.num_edges, device=edges.device) if edges.weight is None else edges.weight
        total = collect(w[:, None], edges, senders=True)
        p = w / total[edges.j, 0]
        absorbing = (total == 0).to(w.dtype)
        report = reporter(self.progress, "ReturnProbabilities", edges.num_nodes)
        found = []
        for nodes in torch.arange(edges.num_nodes, device=edges.device).split(BLOCK):
            column = torch.arange(len(nodes), device=edges.device)
            power = torch.zeros(edges.num_nodes, len(nodes), dtype=w.dtype, device=edges.device)
            power[nodes, column] = 1
            returns = []
            for _ in range(self.steps):
                power = aggregate(p, power, edges, transposed=True) + absorbing * power
                returns.append(power[nodes, column])
            found.append(torch.stack(returns, dim=1))
            report(int(nodes[-1]) + 1)
        return torch.cat(found).float()


class Walker:
    r"""Random walks along the edges j -> i, by the transition matrix :math:`P = D^{-1} A` of the edges' weights.

    A walk stays on a node that no edge leaves.
    """

    def __init__(self, edges: Edges) -> None:
        cumulative = None if edges.weight is None else _cumulative(edges.weight[edges.columns.edge.long()])
        self._set(edges.columns.ptr.long(), edges.columns.index, cumulative)

    @staticmethod
    def over(ptr: Tensor, receiver: Tensor, cumulative: Tensor | None) -> "Walker":
        """Return walks along compressed edges, which may be memory maps.

        The edges that leave node j are the entries ``ptr[j]`` to ``ptr[j + 1]`` of ``receiver``; ``cumulative``
        (m + 1,) are the sums of the first weights.
        """
        walker = Walker.__new__(Walker)
        walker._set(ptr, receiver, cumulative)
        return walker

    def _set(self, ptr: Tensor, receiver: Tensor, cumulative: Tensor | None) -> None:
        self._ptr, self._receiver, self._cumulative = ptr, receiver, cumulative

    def __call__(self, starts: Tensor, *, length: int, generator: torch.Generator) -> Tensor:
        """Return a walk of ``length`` nodes from each of the ``starts``, which it includes; (w,) -> (w, length)."""
        device, any_edges = self._receiver.device, len(self._receiver) > 0
        generator = generator_on(device, generator, needed_by="Walker")
        walk = [starts.to(device)]
        for _ in range(length - 1 if any_edges else 0):
            walk.append(self._step(walk[-1], generator))
        return torch.stack(walk, dim=1) if any_edges else walk[0][:, None].repeat(1, length)

    def _step(self, node: Tensor, generator: torch.Generator) -> Tensor:
        uniform = torch.rand(len(node), generator=generator, device=generator.device, dtype=torch.float64)
        first = self._ptr[node]
        degree = self._ptr[node + 1] - first
        if self._cumulative is None:
            edge = first + (uniform * degree).long()
        else:
            low, high = self._cumulative[first], self._cumulative[first + degree]
            edge = torch.searchsorted(self._cumulative, low + uniform * (high - low), right=True) - 1
        edge = torch.minimum(edge, first + degree - 1).clamp(min=0)  # rounding may lead to an edge of another node
        return torch.where(degree > 0, self._receiver[edge].long(), node)


def _cumulative(weight: Tensor) -> Tensor:
    """Return the sums of the first 0, ..., m weights, (m + 1,); summed on the CPU in a fixed order."""
    total = weight.double().cpu().cumsum(0)
    return torch.cat((total.new_zeros(1), total)).to(weight.device)
