"""Walker: random walks on a graph, many at once."""

import math

import torch
from torch import Tensor

from beltrami.graph import Edges


class Walker:
    r"""Random walks along the edges j -> i, of the first order or with node2vec's memory of one step.

    A walk that came from t to v goes on to x with probability proportional to

    .. math:: \alpha(t, x) \, w_{vx}, \qquad
        \alpha(t, x) = \begin{cases} 1/p & x = t \\ 1 & (t, x) \in E \\ 1/q & \text{otherwise,} \end{cases}

    with w the edge's weight, one where there are none. A large p keeps it from turning back, a small q sends it
    outwards; for p = q = 1, and for the first step, it is the walk of :math:`P = D^{-1} A`. It stays for ever on a
    node that no edge leaves.

    Steps of the second order propose one of the first and reject it with probability
    :math:`1 - \alpha / \max \alpha`: exact, without tables of size (edges x degree), in
    :math:`\max \alpha / \min \alpha` rounds at worst on average. Prepared once in O(m), for any number of walks.

    Args:
        edges: the graph; the walks live on its device.
        p: return parameter.
        q: in-out parameter.
    """

    def __init__(self, edges: Edges, *, p: float = 1.0, q: float = 1.0) -> None:
        check_memory(p=p, q=q)
        self.edges = edges
        self.p = p
        self.q = q
        self._first = edges.columns.ptr[:-1].long()
        self._degree = edges.out_degree().long()
        self._receiver = edges.columns.index.long()
        self._mass = None if edges.weight is None else _mass(edges.weight[edges.columns.edge.long()])
        sender = torch.arange(edges.num_nodes, device=edges.device).repeat_interleave(self._degree)
        self._pair = sender * edges.num_nodes + self._receiver  # ascending

    def __call__(self, starts: Tensor, *, length: int, generator: torch.Generator) -> Tensor:
        """Walks of ``length`` nodes from each of the ``starts``, themselves included; (w,) -> (w, length)."""
        if length < 1:
            raise ValueError(f"a walk has at least one node; got `length` {length}.")
        if starts.dim() != 1 or starts.is_floating_point():
            raise ValueError(f"`starts` must be node numbers (w,); got {starts.dtype} of shape {tuple(starts.shape)}.")
        if len(starts) and not 0 <= int(starts.min()) <= int(starts.max()) < self.edges.num_nodes:
            raise ValueError(f"`starts` must name nodes from 0 to {self.edges.num_nodes - 1}; one lies outside.")
        generator = generator_on(self.edges.device, generator)
        walk = [starts.to(self.edges.device).long()]
        if not self.edges.num_edges:
            return walk[0][:, None].repeat(1, length)
        for step in range(1, length):
            before = walk[step - 2] if step > 1 else None
            walk.append(self._step(before, walk[-1], generator))
        return torch.stack(walk, dim=1)

    def _step(self, before: Tensor | None, here: Tensor, generator: torch.Generator) -> Tensor:
        there = self._propose(here, generator)
        if before is None or self.p == self.q == 1:
            return there
        largest = max(1.0, 1 / self.p, 1 / self.q)
        undecided = (self._degree[here] > 1).nonzero()[:, 0]  # where there is a choice
        while len(undecided):
            alpha = self._alpha(before[undecided], there[undecided])
            undecided = undecided[_unit(len(undecided), generator) * largest >= alpha]
            there[undecided] = self._propose(here[undecided], generator)
        return there

    def _propose(self, here: Tensor, generator: torch.Generator) -> Tensor:
        """One step of the first order."""
        first, degree, unit = self._first[here], self._degree[here], _unit(len(here), generator)
        if self._mass is None:
            edge = first + (unit * degree).long()
        else:
            low, high = self._mass[first], self._mass[first + degree]
            edge = torch.searchsorted(self._mass, low + unit * (high - low), right=True) - 1
        edge = torch.minimum(edge, first + degree - 1).clamp(min=0)  # rounding may carry it past its row
        return torch.where(degree > 0, self._receiver[edge], here)

    def _alpha(self, before: Tensor, there: Tensor) -> Tensor:
        pair = before * self.edges.num_nodes + there
        place = torch.searchsorted(self._pair, pair).clamp(max=len(self._pair) - 1)
        joined = torch.where(self._pair[place] == pair, 1.0, 1 / self.q)
        return torch.where(there == before, 1 / self.p, joined).double()


def generator_on(device: torch.device, generator: torch.Generator) -> torch.Generator:
    """The generator itself where it is on the device; else one there, seeded from its next number."""
    if generator.device == device:
        return generator
    seed = torch.randint(2**62, (1,), generator=generator, device=generator.device)
    return torch.Generator(device).manual_seed(int(seed))


def check_memory(*, p: float, q: float) -> None:
    """Refuse parameters that are no divisors."""
    for name, value in (("p", p), ("q", q)):
        if not 0 < value < math.inf:
            raise ValueError(f"a walk needs a positive, finite `{name}`; got {value}.")


def _mass(weight: Tensor) -> Tensor:
    """Sum of the weights before each edge, and of all, (m,) -> (m + 1,); on the CPU, where the order is fixed."""
    total = weight.double().cpu().cumsum(0)
    return torch.cat((total.new_zeros(1), total)).to(weight.device)


def _unit(count: int, generator: torch.Generator) -> Tensor:
    """Uniform in [0, 1)."""
    return torch.rand(count, generator=generator, device=generator.device, dtype=torch.float64)
