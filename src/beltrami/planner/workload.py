"""The sizes that the cost of a training depends on."""

import math
from dataclasses import dataclass
from typing import Any

from beltrami.config.build_evolution import terminal_time
from beltrami.config.run_cost import Sizes, edges_of, steps_and_stages
from beltrami.config.spec import RunConfig
from beltrami.distributed.partition import PARTS

NUMBER = 4  # bytes of a float32
ENTRY_BYTES = 24  # of a non-zero of sparse features, by rows and by columns
MOST_STORED = 2**20  # weights that live attention stores on the edges; larger graphs, or parts, compute them again
WORKING = 8  # states at the peak of a training step besides those of the evaluations
SENDER_SCORES = 8  # numbers that plain operations keep for an edge and head, on the edges that enter or leave a part


@dataclass(frozen=True)
class Workload:
    """The graph and the network of a training: numbers of nodes and of directed edges with self-loops, columns of the
    features, channels of the state, width of the projections and heads of the attention, and evaluations of the vector
    field in a solve, which are the products of a frozen flow. ``live`` says that attention is computed at each,
    ``senders`` that its weights are divided by sums over the edges that leave a node."""

    nodes: int
    edges: int
    features: int
    channels: int
    width: int
    heads: int
    evaluations: int
    live: bool = False
    senders: bool = False
    projected: int = 0  # numbers that an evaluation of the attention keeps for each node
    nonzeros: int | None = None  # of sparse features; None for dense ones
    planned: float = 0.0  # bytes on the device by the memory plan of a mode that has one
    column_blocks: int = 1  # in which the columns of the state are computed
    row_chunks: int = 1  # in which the rows of the features are encoded

    @staticmethod
    def of(config: RunConfig, sizes: Sizes) -> "Workload":
        """Return the workload of a configuration of BLEND on a graph of these sizes."""
        steps, stages = steps_and_stages(config, terminal_time(config.scheme))
        if config.model.kind != "blend" or steps is None:
            raise ValueError("a plan needs a BLEND network with a fixed number of steps, such as recipe `blend`.")
        spec: Any = config.diffusivity
        width = getattr(spec, "width", 0) * (2 if spec.kind == "exp-kernel" and sizes.positions else 1)
        return Workload(
            nodes=sizes.num_nodes,
            edges=edges_of(config, sizes) + sizes.num_nodes,
            features=sizes.features,
            channels=config.model.feat + (config.model.pos if sizes.positions else 0),
            width=width,
            heads=getattr(spec, "heads", 1),
            evaluations=steps * stages,
            live=config.flow.kind == "live",
            senders=getattr(spec, "over", "rows") != "rows",
            projected=width * (2 if spec.kind == "scaled-dot" else 4),  # others keep them before and after scaling
            nonzeros=None if sizes.dense else sizes.nonzeros,
        )

    @property
    def inputs(self) -> float:
        """Bytes of the features, and of their sparse form where they have one."""
        return NUMBER * self.nodes * self.features + ENTRY_BYTES * (self.nonzeros or 0)

    @property
    def dropped(self) -> float:
        """Bytes of the features of which a training step keeps a copy after dropout: dense ones."""
        return NUMBER * self.nodes * self.features if self.nonzeros is None else NUMBER * self.nonzeros

    @property
    def states(self) -> float:
        """Bytes of the states at all evaluations."""
        return NUMBER * self.nodes * self.channels * self.evaluations

    @property
    def kept(self) -> float:
        """Bytes that a training step keeps for the gradient on one device: one state of every evaluation, two of a live
        flow, and the projections and scores of every evaluation of the attention."""
        attention = self.nodes * self.projected + self._scores(parts=1)
        states = WORKING + (2 if self.live else 1) * self.evaluations
        return NUMBER * (states * self.nodes * self.channels + self._attentions * attention)

    @property
    def kept_by_parts(self) -> float:
        """The same for a live flow by parts of the nodes, each with the rows that it reads. Sums over senders come from
        other parts, so that plain operations compute the weights in place of a kernel."""
        scores = SENDER_SCORES * self.heads * self.edges if self.senders else self._scores(parts=PARTS)
        states = WORKING + (1 if self.senders else 2) * self.evaluations
        rows = self.nodes * self.copies
        return NUMBER * (states * rows * self.channels + self._attentions * (rows * self.projected + scores))

    @property
    def copies(self) -> float:
        """Parts that own or read a node, on average. Greedy partitions of the measured graphs have 0.7 to 1.2 times as
        many; those of METIS have fewer."""
        return min(PARTS, 1.4 * math.pow(self.edges / self.nodes, 0.4))

    def _scores(self, *, parts: int) -> int:
        """Return the numbers that the kernels of the attention keep on the edges: two for each head, and the weight."""
        stored = not self.live or self.edges * self.heads <= parts * MOST_STORED
        return self.edges * (2 * self.heads + 1) if stored else 0

    @property
    def sender_sums(self) -> int:
        """Evaluations of learned attention that need sums over senders, and so several operations more."""
        return self._attentions if self.senders and self.width else 0

    @property
    def gathered(self) -> float:
        """Bytes that all products read along the edges."""
        return NUMBER * self.edges * self.channels * self.evaluations

    @property
    def scored(self) -> float:
        """Bytes that all evaluations of the attention read along the edges."""
        return NUMBER * self.edges * self.width * self._attentions

    @property
    def _attentions(self) -> int:
        """Evaluations of the attention."""
        return self.evaluations if self.live else 1
