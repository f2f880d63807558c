"""The sizes that the cost of a training depends on."""

from dataclasses import dataclass
from typing import Any

from beltrami.config.build_evolution import terminal_time
from beltrami.config.run_cost import Sizes, edges_of, steps_and_stages
from beltrami.config.spec import RunConfig

NUMBER = 4  # bytes of a float32
ENTRY_BYTES = 24  # of a non-zero of sparse features, by rows and by columns
MOST_STORED = 2**20  # weights that live attention stores on the edges; larger graphs compute them again


@dataclass(frozen=True)
class Workload:
    """The graph and the network of a training: numbers of nodes and of directed edges with self-loops, columns of the
    features, channels of the state, width of the projections and heads of the attention, and evaluations of the vector
    field in a solve, which are the products of a frozen flow. ``live`` says that attention is computed at each."""

    nodes: int
    edges: int
    features: int
    channels: int
    width: int
    heads: int
    evaluations: int
    live: bool = False
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
        return Workload(
            nodes=sizes.num_nodes,
            edges=edges_of(config, sizes) + sizes.num_nodes,
            features=sizes.features,
            channels=config.model.feat + (config.model.pos if sizes.positions else 0),
            width=getattr(spec, "width", 0) * (2 if spec.kind == "exp-kernel" else 1),
            heads=getattr(spec, "heads", 1),
            evaluations=steps * stages,
            live=config.flow.kind == "live",
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
    def projections(self) -> float:
        """Bytes of the projected states of all evaluations of the attention."""
        return NUMBER * self.nodes * self.width * (self.evaluations if self.live else 1)

    @property
    def scores(self) -> float:
        """Bytes of the scores on the edges, of all evaluations of the attention that store them."""
        scores = self.edges * self.heads
        return NUMBER * scores * (1 if not self.live else self.evaluations if scores <= MOST_STORED else 0)

    @property
    def gathered(self) -> float:
        """Bytes that all products read along the edges."""
        return NUMBER * self.edges * self.channels * self.evaluations

    @property
    def scored(self) -> float:
        """Bytes that all evaluations of the attention read along the edges."""
        return NUMBER * self.edges * self.width * (self.evaluations if self.live else 1)
