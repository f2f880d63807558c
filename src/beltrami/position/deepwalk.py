"""DeepWalk and node2vec positions."""

import math

import torch
from torch import Tensor

from beltrami.graph import Edges, collect
from beltrami.position.base import Encoding, Progress, announce
from beltrami.position.link_prediction import held_out, link_auc
from beltrami.position.skipgram import SkipGram
from beltrami.position.walk import Walker, check_memory, generator_on

WALK_LENGTHS = (40, 60, 80, 100, 120)  # what ``tuned`` chooses from
SHARE = 0.1  # of the edges, held out to choose by
NOISE = 0.75  # power of the degree with which nodes are drawn as noise
BATCH = 64  # walks in an update
AHEAD = 64  # batches walked at once


class DeepWalk(Encoding):
    r"""Positions whose inner products tell which nodes meet on random walks: skip-gram with negative sampling.

    Every node starts ``walks_per_node`` walks an epoch; two nodes of one window are drawn together, and apart from
    nodes drawn with probability proportional to :math:`d_i^{3/4}` (:class:`SkipGram` has the objective). Dense and
    low-dimensional, for graphs too large for :class:`PPR` rows to be learnt from. p = q = 1 is DeepWalk, as in the
    paper; other values are node2vec (:class:`Walker`). A node without edges lies at the origin.

    Args:
        channels: width of the positions, d'.
        walk_length: nodes in a walk.
        context: nodes in a window: pairs lie at most ``context - 1`` steps apart.
        walks_per_node: walks that start at each node in an epoch.
        p: return parameter of the walks.
        q: in-out parameter of the walks.
        negatives: noise pairs for each pair of a window.
        epochs: how often to walk anew.
        rate: of learning at the start; it falls linearly to nothing.
        tuned: choose the walk length from 40, 60, 80, 100, 120 by link prediction on a tenth of the edges held out,
            as the paper does, then train on the whole graph; ``walk_length`` is not looked at.
        progress: told how many walks are learnt from.

    Shapes:
        -> (n, channels). The same generator gives the same positions on the same kind of device.
    """

    def __init__(
        self,
        channels: int,
        *,
        walk_length: int = 80,
        context: int = 20,
        walks_per_node: int = 16,
        p: float = 1.0,
        q: float = 1.0,
        negatives: int = 1,
        epochs: int = 1,
        rate: float = 0.1,
        tuned: bool = False,
        progress: Progress | None = None,
    ) -> None:
        counts = {"channels": channels, "walks_per_node": walks_per_node, "negatives": negatives, "epochs": epochs}
        for name, value in counts.items():
            if value < 1:
                raise ValueError(f"DeepWalk needs `{name}` at least 1; got {value}.")
        shortest = min(WALK_LENGTHS) if tuned else walk_length
        if not 2 <= context <= shortest:
            raise ValueError(f"DeepWalk needs `context` from 2 to the walk length, {shortest}; got {context}.")
        if not 0 < rate < math.inf:
            raise ValueError(f"DeepWalk needs a positive, finite `rate`; got {rate}.")
        check_memory(p=p, q=q)
        self.channels = channels
        self.walk_length = walk_length
        self.context = context
        self.walks_per_node = walks_per_node
        self.p = p
        self.q = q
        self.negatives = negatives
        self.epochs = epochs
        self.rate = rate
        self.tuned = tuned
        self.progress = progress

    def __call__(self, edges: Edges, generator: torch.Generator | None = None) -> Tensor:
        if generator is None:
            raise ValueError("DeepWalk walks at random: it needs a `generator`, say torch.Generator().manual_seed(0).")
        local = generator_on(edges.device, generator)
        length = self._choose_length(edges, local) if self.tuned else self.walk_length
        return self._learn(edges, length, local, what="DeepWalk")

    def _choose_length(self, edges: Edges, generator: torch.Generator) -> int:
        training, positive, negative = held_out(edges, share=SHARE, generator=generator)

        def quality(length: int) -> float:
            u = self._learn(training, length, generator, what=f"DeepWalk, trying walks of {length}")
            return link_auc(lambda i, j: (u[i] * u[j]).sum(-1), positive, negative)

        return max(WALK_LENGTHS, key=quality)

    def _learn(self, edges: Edges, length: int, generator: torch.Generator, *, what: str) -> Tensor:
        degree = _degree(edges)
        if not edges.num_edges:
            return degree.new_zeros(edges.num_nodes, self.channels)
        walker = Walker(edges, p=self.p, q=self.q)
        skipgram = SkipGram(
            degree**NOISE, self.channels, context=self.context, negatives=self.negatives, generator=generator
        )
        starts = edges.out_degree().nonzero()[:, 0].repeat(self.walks_per_node)
        total, learnt = self.epochs * len(starts), 0
        done = announce(self.progress, what, total)
        for _ in range(self.epochs):
            order = torch.randperm(len(starts), generator=generator, device=generator.device)
            for ahead in starts[order].split(AHEAD * BATCH):
                for walks in walker(ahead, length=length, generator=generator).split(BATCH):
                    skipgram.update(walks, rate=self.rate * (1 - learnt / total), generator=generator)
                    learnt += len(walks)
                done(learnt)
        return torch.where(degree[:, None] > 0, skipgram.u, 0.0)


def _degree(edges: Edges) -> Tensor:
    """Weight of the edges at each node, in and out, (n,)."""
    w = torch.ones(edges.num_edges, device=edges.device) if edges.weight is None else edges.weight.float()
    both: Tensor = collect(w[:, None], edges) + collect(w[:, None], edges, senders=True)
    return both[:, 0]
