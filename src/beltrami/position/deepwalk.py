"""DeepWalk: positions learned by skip-gram on random walks, which link prediction chooses the length of."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from beltrami.arguments import checked
from beltrami.graph import Edges, collect
from beltrami.graph.edges import Compressed
from beltrami.graph.ops import dispatch
from beltrami.position.base import Encoding, Progress, check_counts, check_positive, generator_on, reporter
from beltrami.position.walk import Walker

WALK_LENGTHS = (40, 60, 80, 100, 120)  # candidates of ``tuned``
HELD_OUT = 0.1  # share of the edges held out to compare walk lengths
NOISE_POWER = 0.75  # power of the degree in the distribution of noise nodes
BATCH = 64  # walks in an update
WALKED_BATCHES = 64  # batches of walks sampled at once
NOISE_NODES = 32  # noise nodes shared by all places of a walk
EPSILON = 1e-10  # added to Adagrad's sums of squares, so that rows without gradient do not move


@checked
@dataclass(frozen=True)
class DeepWalk(Encoding):
    r"""Positions whose inner products predict which nodes meet on random walks: skip-gram with negative sampling.

    Every node starts ``walks_per_node`` new walks in an epoch. Nodes of one window attract each other, and are repelled
    by noise nodes drawn with probability proportional to :math:`d_i^{3/4}` (objective: :class:`SkipGram`). Dense and
    low-dimensional, for graphs too large to learn from the rows of :class:`PPR`. The position of a node without edges
    is the origin.

    ``context`` is the number of nodes in a window: pairs are at most ``context - 1`` steps apart. ``negatives`` is the
    number of noise pairs for each pair of a window. The learning ``rate`` decreases linearly to zero. ``tuned`` chooses
    the walk length from 40, 60, 80, 100, 120 by link prediction on a tenth of the edges held out, as the paper does,
    then trains on the whole graph; ``walk_length`` is ignored. -> (n, channels), the same for the same generator and
    kind of device.
    """

    channels: int
    _: KW_ONLY
    walk_length: int = 80
    context: int = 20
    walks_per_node: int = 16
    negatives: int = 1
    epochs: int = 1
    rate: float = 0.1
    tuned: bool = False
    progress: Progress | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_counts(self, "channels", "walks_per_node", "negatives", "epochs")
        check_positive(self, "rate")
        shortest = min(WALK_LENGTHS) if self.tuned else self.walk_length
        if not 2 <= self.context <= shortest:
            raise ValueError(f"DeepWalk needs `context` from 2 to the walk length, {shortest}; got {self.context}.")

    @checked
    def __call__(self, edges: Edges, generator: torch.Generator | None = None) -> Tensor:
        local = generator_on(edges.device, generator, needed_by="DeepWalk")
        length = self._choose_length(edges, local) if self.tuned else self.walk_length
        return self._learn(edges, length, local, task="DeepWalk")

    def _choose_length(self, edges: Edges, generator: torch.Generator) -> int:
        training, positive, negative = held_out(edges, share=HELD_OUT, generator=generator)

        def quality(length: int) -> float:
            u = self._learn(training, length, generator, task=f"DeepWalk, trying walks of {length}")
            return link_auc(lambda i, j: (u[i] * u[j]).sum(-1), positive, negative)

        return max(WALK_LENGTHS, key=quality)

    def _learn(self, edges: Edges, length: int, generator: torch.Generator, *, task: str) -> Tensor:
        degree = _degree(edges)
        u = degree.new_zeros(edges.num_nodes, self.channels)
        if edges.num_edges:
            starts = edges.out_degree().nonzero()[:, 0].repeat(self.walks_per_node)
            walking = Walking(Walker(edges), [starts], length)
            self.learn(u, degree, walking, generator, task=task)
        return u

    def learn(
        self, u: Tensor, degree: Tensor, walking: "Walking", generator: torch.Generator, *, task: str = "DeepWalk"
    ) -> None:
        """Learn the positions ``u`` (n, channels), in place, of nodes with the degrees (n,), in and out together."""
        skipgram = SkipGram(degree**NOISE_POWER, u, context=self.context, negatives=self.negatives, generator=generator)
        total, learned = self.epochs * sum(map(len, walking.starts)), 0
        report = reporter(self.progress, task, total)
        for starts in walking.starts * self.epochs:
            order = torch.randperm(len(starts), generator=generator, device=generator.device)
            for some in order.split(WALKED_BATCHES * BATCH):
                for walks in walking.walker(starts[some], length=walking.length, generator=generator).split(BATCH):
                    skipgram.update(walks, rate=self.rate * (1 - learned / total), generator=generator)
                    learned += len(walks)
                report(learned)
        u[degree == 0] = 0


class Walking(NamedTuple):
    """Walks to learn from: in an epoch, one of ``length`` nodes from each of the ``starts``, list by list, in random
    order within a list."""

    walker: Walker
    starts: list[Tensor]
    length: int


class SkipGram:
    r"""Skip-gram with negative sampling on walks, with one table of positions u for nodes and contexts. It minimises

    .. math:: -\sum_{0 < |s - t| < c} \Big( \log \sigma \langle u_{w_s}, u_{w_t} \rangle
        + k \, \mathbb{E}_{v \sim \text{noise}} \log \sigma(-\langle u_{w_s}, u_v \rangle) \Big)

    over the nodes w_1, ..., w_l of each walk, by Adagrad with one scale per row; c is ``context`` and k ``negatives``.
    The pairs of a walk are one product of (l, d) with itself, and all places of a walk share its noise nodes, so that
    an update reads O(l d) numbers for its O(l c) pairs and writes only the rows that occur. ``noise`` (n,) is the
    unnormalised probability of each node as noise; all generators are on its device. The positions are learned in
    place in ``u`` (n, d), whatever it holds.
    """

    def __init__(self, noise: Tensor, u: Tensor, *, context: int, negatives: int, generator: torch.Generator) -> None:
        self.context, self.negatives = context, negatives
        self.u = u.normal_(generator=generator).div_(u.shape[1] ** 0.5)
        self._squares = torch.zeros(len(noise), 1, device=noise.device)
        self._cumulative = noise.double().cpu().cumsum(0).to(noise.device)  # the CPU has a fixed order of summation

    def update(self, walks: Tensor, *, rate: float, generator: torch.Generator) -> None:
        """Make one step of Adagrad on a batch of walks (b, l)."""
        noise = self._draw((walks.shape[0], NOISE_NODES), generator)
        x, y = self.u[walks], self.u[noise]
        window = self._window(walks.shape[1])
        noise_weight = self.negatives / NOISE_NODES * window.sum(1, keepdim=True)  # of each noise node at each place
        attract = torch.bmm(x, x.mT).neg_().sigmoid_().mul_(window).mul_(-2)  # the sum contains each pair twice
        repel = torch.bmm(x, y.mT).sigmoid_().mul_(noise_weight)
        of_walks = torch.baddbmm(torch.bmm(repel, y), attract, x).flatten(0, 1)
        of_noise = torch.bmm(repel.mT, x).flatten(0, 1)
        nodes, gradient = torch.cat((walks.flatten(), noise.flatten())), torch.cat((of_walks, of_noise))
        rows, total = _sum_by(nodes, gradient)
        squares = self._squares[rows] + total.square().mean(1, keepdim=True)
        self._squares[rows] = squares
        self.u[rows] -= rate * total * (squares + EPSILON).rsqrt()

    def _window(self, length: int) -> Tensor:
        """Return one for each pair of places in a common window, else zero, (l, l)."""
        place = torch.arange(length, device=self.u.device)
        distance = (place - place[:, None]).abs()
        return ((distance > 0) & (distance < self.context)).float()

    def _draw(self, shape: tuple[int, int], generator: torch.Generator) -> Tensor:
        uniform = torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64)
        last = len(self._cumulative) - 1
        return torch.searchsorted(self._cumulative, uniform * self._cumulative[-1], right=True).clamp(max=last)


def held_out(edges: Edges, *, share: float, generator: torch.Generator) -> tuple[Edges, Tensor, Tensor]:
    """Hold out a share of the undirected edges, both directions of each, and draw as many pairs that are no edges.

    Non-edges are pairs of two nodes that the whole graph joins in neither direction, drawn uniformly, none twice.
    Self-loops are never held out. Return the training graph, the held-out edges (2, k) and the non-edges (2, k).
    """
    if not 0 < share < 1:
        raise ValueError(f"`share` must lie between 0 and 1; got {share}.")
    n = edges.num_nodes
    key = torch.minimum(edges.i, edges.j) * n + torch.maximum(edges.i, edges.j)  # the same for both directions
    pairs = key[edges.i != edges.j].unique()
    count, free = round(share * len(pairs)), n * (n - 1) // 2 - len(pairs)
    if not 0 < count <= free:
        raise ValueError(
            f"`share` {share} holds out {count} of {len(pairs)} edges: there must be at least one, and at most as many "
            f"as the {free} pairs that are no edges."
        )
    order = torch.randperm(len(pairs), generator=generator, device=generator.device).to(edges.device)
    positive = pairs[order[:count]]
    negative = _non_edges(pairs, num_nodes=n, count=count, generator=generator)
    kept = ~torch.isin(key, positive)
    weight = None if edges.weight is None else edges.weight[kept]
    training = Edges.build(edges.edge_index[:, kept], num_nodes=n, weight=weight)
    return training, torch.stack((positive // n, positive % n)), torch.stack((negative // n, negative % n))


def link_auc(score: Callable[[Tensor, Tensor], Tensor], positive: Tensor, negative: Tensor) -> float:
    """Return the area under the ROC curve: the probability that an edge scores above a non-edge, a tie counting half.

    ``score`` maps pairs of nodes (k,), (k,) -> (k,); ``positive`` (2, k) are edges, ``negative`` (2, l) are not.
    """
    if not (positive.shape[1] and negative.shape[1]):
        raise ValueError(f"`positive` and `negative` need a pair each; got {len(positive.T)} and {len(negative.T)}.")
    of_edges, others = score(positive[0], positive[1]), score(negative[0], negative[1]).sort().values
    if not bool(torch.isfinite(of_edges).all() & torch.isfinite(others).all()):
        raise ValueError("`score` must be finite on every pair; it returned NaN or infinity.")
    below, not_above = torch.searchsorted(others, of_edges), torch.searchsorted(others, of_edges, right=True)
    return float((below + not_above).double().mean() / (2 * len(others)))


def _sum_by(nodes: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distinct nodes and the sum of the values at each, in a fixed order on every device, unlike
    ``index_add``; (k,), (k, d) -> (r,), (r, d)."""
    ordered, order = nodes.sort(stable=True)
    rows, counts = ordered.unique_consecutive(return_counts=True)
    ptr = torch.cat((counts.new_zeros(1), counts.cumsum(0))).int()
    return rows, dispatch.row_sums(Compressed(ptr, order.int(), order.int()), values)


def _degree(edges: Edges) -> Tensor:
    """Return the total weight of the edges that enter or leave each node, (n,)."""
    w = torch.ones(edges.num_edges, device=edges.device) if edges.weight is None else edges.weight.float()
    both: Tensor = collect(w[:, None], edges) + collect(w[:, None], edges, senders=True)
    return both[:, 0]


def _non_edges(pairs: Tensor, *, num_nodes: int, count: int, generator: torch.Generator) -> Tensor:
    """Return the keys of ``count`` pairs i < j that are not in ``pairs``, by rejection sampling."""
    found = pairs[:0]
    while len(found) < count:
        shape = (2, 4 * count)
        i, j = torch.randint(num_nodes, shape, generator=generator, device=generator.device).to(pairs.device)
        drawn = (i * num_nodes + j)[i < j]
        found = torch.cat((found, drawn[~torch.isin(drawn, pairs)])).unique()
    order = torch.randperm(len(found), generator=generator, device=generator.device).to(pairs.device)
    return found[order[:count]]
