"""DeepWalk and node2vec: positions learned by skip-gram on random walks."""

from dataclasses import KW_ONLY, dataclass, field

import torch
from torch import Tensor

from beltrami.graph import Edges, collect
from beltrami.graph.edges import Compressed
from beltrami.graph.ops import dispatch
from beltrami.position.base import Encoding, Progress, check_counts, check_positive, generator_on, reporter
from beltrami.position.link_prediction import held_out, link_auc
from beltrami.position.walk import Walker

WALK_LENGTHS = (40, 60, 80, 100, 120)  # candidates of ``tuned``
HELD_OUT = 0.1  # share of the edges held out to compare walk lengths
NOISE_POWER = 0.75  # power of the degree in the distribution of noise nodes
BATCH = 64  # walks in an update
WALKED_BATCHES = 64  # batches of walks sampled at once
NOISE_NODES = 32  # noise nodes shared by all places of a walk
EPSILON = 1e-10  # added to Adagrad's sums of squares, so that rows without gradient do not move


@dataclass(frozen=True)
class DeepWalk(Encoding):
    r"""Positions whose inner products predict which nodes meet on random walks: skip-gram with negative sampling.

    Every node starts ``walks_per_node`` new walks in an epoch. Nodes of one window attract each other, and are repelled
    by noise nodes drawn with probability proportional to :math:`d_i^{3/4}` (objective: :class:`SkipGram`). Dense and
    low-dimensional, for graphs too large to learn from the rows of :class:`PPR`. p = q = 1 is DeepWalk, as in the
    paper; other values are node2vec (:class:`Walker`). The position of a node without edges is the origin.

    Args:
        context: number of nodes in a window: pairs are at most ``context - 1`` steps apart.
        p, q: return and in-out parameter of the walks.
        negatives: noise pairs for each pair of a window.
        rate: initial learning rate; it decreases linearly to zero.
        tuned: choose the walk length from 40, 60, 80, 100, 120 by link prediction on a tenth of the edges held out,
            as the paper does, then train on the whole graph; ``walk_length`` is ignored.

    Shapes:
        -> (n, channels). The same generator gives the same positions on the same kind of device.
    """

    channels: int
    _: KW_ONLY
    walk_length: int = 80
    context: int = 20
    walks_per_node: int = 16
    p: float = 1.0
    q: float = 1.0
    negatives: int = 1
    epochs: int = 1
    rate: float = 0.1
    tuned: bool = False
    progress: Progress | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_counts(self, "channels", "walks_per_node", "negatives", "epochs")
        check_positive(self, "rate", "p", "q")
        shortest = min(WALK_LENGTHS) if self.tuned else self.walk_length
        if not 2 <= self.context <= shortest:
            raise ValueError(f"DeepWalk needs `context` from 2 to the walk length, {shortest}; got {self.context}.")

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
        if not edges.num_edges:
            return degree.new_zeros(edges.num_nodes, self.channels)
        walker, noise = Walker(edges, p=self.p, q=self.q), degree**NOISE_POWER
        skipgram = SkipGram(noise, self.channels, context=self.context, negatives=self.negatives, generator=generator)
        starts = edges.out_degree().nonzero()[:, 0].repeat(self.walks_per_node)
        total, learned = self.epochs * len(starts), 0
        report = reporter(self.progress, task, total)
        for _ in range(self.epochs):
            order = torch.randperm(len(starts), generator=generator, device=generator.device)
            for some in starts[order].split(WALKED_BATCHES * BATCH):
                for walks in walker(some, length=length, generator=generator).split(BATCH):
                    skipgram.update(walks, rate=self.rate * (1 - learned / total), generator=generator)
                    learned += len(walks)
                report(learned)
        return torch.where(degree[:, None] > 0, skipgram.u, 0.0)


class SkipGram:
    r"""Skip-gram with negative sampling on walks, with one table of positions u for nodes and contexts. It minimises

    .. math:: -\sum_{0 < |s - t| < c} \Big( \log \sigma \langle u_{w_s}, u_{w_t} \rangle
        + k \, \mathbb{E}_{v \sim \text{noise}} \log \sigma(-\langle u_{w_s}, u_v \rangle) \Big)

    over the nodes w_1, ..., w_l of each walk, by Adagrad with one scale per row; c is ``context`` and k ``negatives``.
    The pairs of a walk are one product of (l, d) with itself, and all places of a walk share its noise nodes, so that
    an update reads O(l d) numbers for its O(l c) pairs and writes only the rows that occur. ``noise`` (n,) is the
    unnormalised probability of each node as noise; all generators are on its device.
    """

    def __init__(
        self, noise: Tensor, channels: int, *, context: int, negatives: int, generator: torch.Generator
    ) -> None:
        self.context, self.negatives = context, negatives
        shape = (len(noise), channels)
        self.u = torch.randn(shape, generator=generator, device=noise.device) / channels**0.5
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


def _sum_by(nodes: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distinct nodes and the sum of the values at each, (k,), (k, d) -> (r,), (r, d).

    Row sums have a fixed order of summation on every device; ``index_add`` does not.
    """
    ordered, order = nodes.sort(stable=True)
    rows, counts = ordered.unique_consecutive(return_counts=True)
    ptr = torch.cat((counts.new_zeros(1), counts.cumsum(0))).int()
    return rows, dispatch.row_sums(Compressed(ptr, order.int(), order.int()), values)


def _degree(edges: Edges) -> Tensor:
    """Return the total weight of the edges that enter or leave each node, (n,)."""
    w = torch.ones(edges.num_edges, device=edges.device) if edges.weight is None else edges.weight.float()
    both: Tensor = collect(w[:, None], edges) + collect(w[:, None], edges, senders=True)
    return both[:, 0]
