"""ShallowEmbedding: positions learned from the edges, one free point a node."""

import math

import torch
from torch import Tensor

from beltrami.geometry import Metric
from beltrami.graph import Edges, aggregate, collect
from beltrami.position.base import Progress, announce

SMOOTHING = 200  # steps of the lazy walk on the noise that training starts from
RESTART = 1e-3  # of that walk, so that something is left to start from where the walk forgets quickly
RADIUS = 0.1  # of the start: small, so that every metric is nearly flat there and the layout can still turn over
LONGEST = 1.0  # step, in the metric; a hub collects the pull of all its edges at once
SLOW = 0.1  # times `rate` during `burn_in`


class ShallowEmbedding:
    r"""Points :math:`u_i` of a metric space that make each neighbour likely among sampled strangers.

    .. math:: \min_u \sum_{j \to i} -\log
        \frac{e^{-d(u_i, u_j)^2}}{e^{-d(u_i, u_j)^2} + \sum_{k \in N(i, j)} e^{-d(u_i, u_k)^2}}

    as in stochastic neighbour embedding, with N(i, j) drawn uniformly from the nodes that are no neighbours of i, by
    Riemannian gradient descent, :math:`u \leftarrow \exp_u(-\eta\, \mathrm{grad})`, in mini-batches of edges, with
    :math:`\eta` falling to zero. Squared distances act as springs: a branch that lies wrong is drawn over as a whole,
    where plain distances leave it. Training starts from noise smoothed by a lazy random walk, a rough picture of the
    Laplacian's slow modes.

    On a CPU the same generator gives the same bits; on a GPU sums are taken in any order.

    Args:
        metric: of the space the points live in.
        channels: its dimension, d'.
        epochs: passes over the edges.
        negatives: strangers for each edge.
        rate: :math:`\eta` at the start.
        burn_in: epochs, of all, spent at a tenth of the rate while the layout settles.
        batch: edges in a step. More steps lay out better, fewer run faster.
        progress: told how many epochs are done.

    Shapes:
        -> (n, channels), to be compared by ``metric``.
    """

    def __init__(
        self,
        metric: Metric,
        channels: int,
        *,
        epochs: int = 60,
        negatives: int = 10,
        rate: float = 0.03,
        burn_in: int = 5,
        batch: int = 1024,
        progress: Progress | None = None,
    ) -> None:
        counts = {"channels": channels, "epochs": epochs, "negatives": negatives, "batch": batch}
        for name, value in counts.items():
            if value < 1:
                raise ValueError(f"a shallow embedding needs `{name}` at least 1; got {value}.")
        if not 0 < rate < math.inf:
            raise ValueError(f"a shallow embedding needs a positive, finite `rate`; got {rate}.")
        if not 0 <= burn_in <= epochs:
            raise ValueError(f"a shallow embedding needs `burn_in` from 0 to `epochs`, {epochs}; got {burn_in}.")
        self.metric = metric
        self.channels = channels
        self.epochs = epochs
        self.negatives = negatives
        self.rate = rate
        self.burn_in = burn_in
        self.batch = batch
        self.progress = progress

    def __call__(self, edges: Edges, generator: torch.Generator) -> Tensor:
        """Train on the graph, self-loops apart; ``generator`` is on the graph's device."""
        edges = _without_loops(edges)
        u = self._start(edges, generator)
        done = announce(self.progress, f"Embedding in {type(self.metric).__name__}", self.epochs)
        for epoch in range(self.epochs if edges.num_edges else 0):
            rate = self.rate * (1 - epoch / self.epochs) * (SLOW if epoch < self.burn_in else 1.0)
            order = torch.randperm(edges.num_edges, generator=generator, device=edges.device)
            for some in order.split(self.batch):
                self._step(u, edges, some, rate=rate, generator=generator)
            done(epoch + 1)
        return u

    def _start(self, edges: Edges, generator: torch.Generator) -> Tensor:
        """Noise after a lazy walk on the graph, centred and small; nodes without edges at the origin. (n, d')."""
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

    def _step(self, u: Tensor, edges: Edges, some: Tensor, *, rate: float, generator: torch.Generator) -> None:
        """One step on these edges, in place on the rows of ``u`` that they and their strangers touch."""
        i, j = edges.i[some], edges.j[some]
        shape = (len(some), self.negatives)
        strangers = torch.randint(edges.num_nodes, shape, generator=generator, device=edges.device)
        group = torch.cat((i[:, None], j[:, None], strangers), dim=1)
        nodes, place = group.unique(return_inverse=True)
        here = u[nodes].requires_grad_()
        points = here.index_select(0, place.flatten()).unflatten(0, group.shape)
        score = -self.metric.distance(points[:, :1], points[:, 1:]).square()
        told_apart = torch.cat((torch.ones_like(j, dtype=torch.bool)[:, None], ~_joined(edges, i, strangers)), dim=1)
        loss = -score.masked_fill(~told_apart, -torch.inf).log_softmax(1)[:, 0]
        if edges.weight is not None:
            loss = loss * (edges.weight[some] / edges.weight.mean())
        (slope,) = torch.autograd.grad(loss.sum(), here)
        with torch.no_grad():
            u[nodes] = self._moved(here, slope, rate=rate)

    def _moved(self, u: Tensor, slope: Tensor, *, rate: float) -> Tensor:
        step = -rate * self.metric.riemannian(u, slope)
        shortened = LONGEST / self.metric.norm(u, step).clamp_min(LONGEST)
        return self.metric.project(self.metric.exp(u, shortened[:, None] * step))


def _joined(edges: Edges, i: Tensor, k: Tensor) -> Tensor:
    """Whether each k is i itself or has an edge into it; (b,), (b, s) -> booleans (b, s)."""
    keys = edges.i * edges.num_nodes + edges.j  # sorted: edges are
    wanted = i[:, None] * edges.num_nodes + k
    found = keys[torch.searchsorted(keys, wanted).clamp_max(len(keys) - 1)]
    return (found == wanted) | (k == i[:, None])


def _without_loops(edges: Edges) -> Edges:
    other = edges.i != edges.j
    weight = None if edges.weight is None else edges.weight[other]
    return Edges.build(edges.edge_index[:, other], num_nodes=edges.num_nodes, weight=weight)
