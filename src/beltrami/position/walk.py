"""Random walks: sampled walks, and their return probabilities as positions."""

from dataclasses import KW_ONLY, dataclass, field

import torch
from torch import Tensor

from beltrami.graph import Edges, aggregate, collect
from beltrami.position.base import Encoding, Progress, check_counts, check_positive, generator_on, reporter

BLOCK = 512  # columns of the transition matrix's powers computed at once


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
    r"""Random walks along the edges j -> i, of first order or node2vec's walks of second order.

    A walk that came from t to v continues to x with probability proportional to

    .. math:: \alpha(t, x) \, w_{vx}, \qquad
        \alpha(t, x) = \begin{cases} 1/p & x = t \\ 1 & (t, x) \in E \\ 1/q & \text{otherwise,} \end{cases}

    where w are the edge weights, or one. A large p avoids turning back, a small q leads away from the start; for
    p = q = 1, and for the first step, it is the walk of :math:`P = D^{-1} A`. A walk stays on a node that no edge
    leaves.

    A step of second order is a step of first order that is rejected with probability :math:`1 - \alpha / \max \alpha`:
    exact, without tables of size (edges x degree), in at most :math:`\max \alpha / \min \alpha` rounds on average.
    """

    def __init__(self, edges: Edges, *, p: float = 1.0, q: float = 1.0) -> None:
        self.edges, self.p, self.q = edges, p, q
        check_positive(self, "p", "q")
        self._first = edges.columns.ptr[:-1].long()
        self._degree = edges.out_degree().long()
        self._receiver = edges.columns.index.long()
        self._cumulative = None if edges.weight is None else _cumulative(edges.weight[edges.columns.edge.long()])
        sender = torch.arange(edges.num_nodes, device=edges.device).repeat_interleave(self._degree)
        self._pair = sender * edges.num_nodes + self._receiver  # ascending

    def __call__(self, starts: Tensor, *, length: int, generator: torch.Generator) -> Tensor:
        """Return a walk of ``length`` nodes from each of the ``starts``, which it includes; (w,) -> (w, length)."""
        if length < 1:
            raise ValueError(f"a walk needs `length` at least 1; got {length}.")
        if starts.dim() != 1 or starts.is_floating_point():
            raise ValueError(f"`starts` must be node numbers (w,); got {starts.dtype} of shape {tuple(starts.shape)}.")
        if len(starts) and not 0 <= int(starts.min()) <= int(starts.max()) < self.edges.num_nodes:
            raise ValueError(f"`starts` must name nodes from 0 to {self.edges.num_nodes - 1}; one lies outside.")
        generator = generator_on(self.edges.device, generator, needed_by="Walker")
        walk = [starts.to(self.edges.device).long()]
        if not self.edges.num_edges:
            return walk[0][:, None].repeat(1, length)
        for step in range(1, length):
            previous = walk[step - 2] if step > 1 else None
            walk.append(self._step(previous, walk[-1], generator))
        return torch.stack(walk, dim=1)

    def _step(self, previous: Tensor | None, node: Tensor, generator: torch.Generator) -> Tensor:
        proposed = self._propose(node, generator)
        if previous is None or self.p == self.q == 1:
            return proposed
        largest = max(1.0, 1 / self.p, 1 / self.q)
        undecided = (self._degree[node] > 1).nonzero()[:, 0]  # a node with one edge leaves no choice
        while len(undecided):
            alpha = self._alpha(previous[undecided], proposed[undecided])
            undecided = undecided[_uniform(len(undecided), generator) * largest >= alpha]
            proposed[undecided] = self._propose(node[undecided], generator)
        return proposed

    def _propose(self, node: Tensor, generator: torch.Generator) -> Tensor:
        """Return the next node of a step of first order."""
        first, degree, uniform = self._first[node], self._degree[node], _uniform(len(node), generator)
        if self._cumulative is None:
            edge = first + (uniform * degree).long()
        else:
            low, high = self._cumulative[first], self._cumulative[first + degree]
            edge = torch.searchsorted(self._cumulative, low + uniform * (high - low), right=True) - 1
        edge = torch.minimum(edge, first + degree - 1).clamp(min=0)  # rounding may lead to an edge of another node
        return torch.where(degree > 0, self._receiver[edge], node)

    def _alpha(self, previous: Tensor, proposed: Tensor) -> Tensor:
        pair = previous * self.edges.num_nodes + proposed
        place = torch.searchsorted(self._pair, pair).clamp(max=len(self._pair) - 1)
        joined = torch.where(self._pair[place] == pair, 1.0, 1 / self.q)
        return torch.where(proposed == previous, 1 / self.p, joined).double()


def _cumulative(weight: Tensor) -> Tensor:
    """Return the sums of the first 0, ..., m weights, (m + 1,); summed on the CPU in a fixed order."""
    total = weight.double().cpu().cumsum(0)
    return torch.cat((total.new_zeros(1), total)).to(weight.device)


def _uniform(count: int, generator: torch.Generator) -> Tensor:
    """Return random numbers in [0, 1)."""
    return torch.rand(count, generator=generator, device=generator.device, dtype=torch.float64)
