"""Hyperbolic positions: an embedding of the nodes in the Poincaré ball, learned from the edges."""

from dataclasses import KW_ONLY, dataclass, field

import torch
from torch import Tensor

from beltrami.arguments import checked
from beltrami.geometry import Metric, PoincareBall
from beltrami.graph import Edges, aggregate, collect
from beltrami.position.base import Encoding, Progress, check_counts, check_positive, generator_on, reporter

SMOOTHING = 200  # steps of the lazy random walk that smooths the initial noise
RESTART = 1e-3  # restart probability of that walk, so that the result is not constant where the walk mixes fast
RADIUS = 0.1  # of the initial points: small, so that every metric is nearly flat there
LONGEST = 1.0  # longest step in the metric; the gradient of a hub is the sum over all its edges
BURN_IN_FACTOR = 0.1  # of the learning rate during `burn_in`


@checked
@dataclass(frozen=True)
class Hyperbolic(Encoding):
    r"""Points :math:`u_i` of the Poincaré ball, trained to make each neighbour likely among sampled non-neighbours.

    .. math:: \min_u \sum_{j \to i} -\log
        \frac{e^{-d(u_i, u_j)^2}}{e^{-d(u_i, u_j)^2} + \sum_{k \in N(i, j)} e^{-d(u_i, u_k)^2}}

    as in stochastic neighbour embedding, with ``negatives`` nodes N(i, j) drawn uniformly from those that are not
    neighbours of i, by Riemannian gradient descent, :math:`u \leftarrow \exp_u(-\eta\, \mathrm{grad})`, in batches of
    ``batch`` edges. The rate :math:`\eta` decreases to zero from ``rate``, and is a tenth of that for ``burn_in``
    epochs. Squared distances move a misplaced branch as a whole, which plain distances do not. Training starts from
    noise smoothed by a lazy random walk, an approximation of the Laplacian's slow modes.

    Hubs lie near the origin: volume grows exponentially with the radius, as the nodes of a tree do with its depth, so
    that few dimensions suffice. The defaults are for citation graphs; to reconstruct a tree, use more epochs, more
    negatives and a larger rate. Another ``metric`` serves comparisons. -> (n, channels), deterministic on a CPU.
    """

    channels: int
    _: KW_ONLY
    epochs: int = 60
    negatives: int = 10
    rate: float = 0.03
    burn_in: int = 5
    batch: int = 1024
    metric: Metric = field(default_factory=PoincareBall)
    progress: Progress | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_counts(self, "channels", "epochs", "negatives", "batch")
        check_positive(self, "rate")
        if not 0 <= self.burn_in <= self.epochs:
            raise ValueError(f"Hyperbolic needs `burn_in` from 0 to `epochs`, {self.epochs}; got {self.burn_in}.")

    @checked
    def __call__(self, edges: Edges, generator: torch.Generator | None = None) -> Tensor:
        """Return the points of a graph, ignoring self-loops."""
        edges, generator = _without_loops(edges), generator_on(edges.device, generator, needed_by="Hyperbolic")
        u = self._start(edges, generator)
        report = reporter(self.progress, "Hyperbolic", self.epochs)
        for epoch in range(self.epochs if edges.num_edges else 0):
            rate = self.rate * (1 - epoch / self.epochs) * (BURN_IN_FACTOR if epoch < self.burn_in else 1.0)
            order = torch.randperm(edges.num_edges, generator=generator, device=edges.device)
            for batch in order.split(self.batch):
                self._step(u, edges, batch, rate=rate, generator=generator)
            report(epoch + 1)
        return u

    def _start(self, edges: Edges, generator: torch.Generator) -> Tensor:
        """Return noise smoothed by a lazy walk, centred and small; nodes without edges at the origin. (n, d')."""
        noise = torch.randn(edges.num_nodes, self.channels, generator=generator, device=edges.device)
        w = torch.ones(edges.num_edges, device=edges.device) if edges.weight is None else edges.weight.float()
        degree = collect(w[:, None], edges)  # (n, 1)
        walk, u = w / degree[edges.i, 0], noise
        for _ in range(SMOOTHING):
            u = RESTART * noise + (1 - RESTART) * (u + aggregate(walk, u, edges)) / 2
        centre = (degree * u).sum(0) / degree.sum().clamp_min(1.0)
        u = (u - centre) * (degree > 0)
        largest = torch.linalg.vector_norm(u, dim=-1).max()
        return self.metric.project(RADIUS * u / largest.clamp_min(torch.finfo(u.dtype).tiny))

    def _step(self, u: Tensor, edges: Edges, batch: Tensor, *, rate: float, generator: torch.Generator) -> None:
        """Make one step on a batch of edges, in place on the rows of ``u`` of their ends and negatives."""
        i, j = edges.i[batch], edges.j[batch]
        shape = (len(batch), self.negatives)
        sampled = torch.randint(edges.num_nodes, shape, generator=generator, device=edges.device)
        group = torch.cat((i[:, None], j[:, None], sampled), dim=1)
        nodes, place = group.unique(return_inverse=True)
        moving = u[nodes].requires_grad_()
        points = moving.index_select(0, place.flatten()).unflatten(0, group.shape)
        score = -self.metric.distance(points[:, :1], points[:, 1:]).square()
        compared = torch.cat((torch.ones_like(j, dtype=torch.bool)[:, None], ~_joined(edges, i, sampled)), dim=1)
        loss = -score.masked_fill(~compared, -torch.inf).log_softmax(1)[:, 0]
        if edges.weight is not None:
            loss = loss * (edges.weight[batch] / edges.weight.mean())
        (gradient,) = torch.autograd.grad(loss.sum(), moving)
        with torch.no_grad():
            step = -rate * self.metric.riemannian(moving, gradient)
            shortened = LONGEST / self.metric.norm(moving, step).clamp_min(LONGEST)
            u[nodes] = self.metric.project(self.metric.exp(moving, shortened[:, None] * step))


def _joined(edges: Edges, i: Tensor, k: Tensor) -> Tensor:
    """Return whether each k is i or has an edge to i; (b,), (b, s) -> booleans (b, s)."""
    keys = edges.i * edges.num_nodes + edges.j  # sorted, because the edges are
    wanted = i[:, None] * edges.num_nodes + k
    found = keys[torch.searchsorted(keys, wanted).clamp_max(len(keys) - 1)]
    return (found == wanted) | (k == i[:, None])


def _without_loops(edges: Edges) -> Edges:
    other = edges.i != edges.j
    weight = None if edges.weight is None else edges.weight[other]
    return Edges.build(edges.edge_index[:, other], num_nodes=edges.num_nodes, weight=weight)
