"""Settings of runs on graph folders: on rows of diffused features, the recipe precomputed, and in blocks."""

from typing import Literal

from beltrami.arguments import Count, Name, NotNegative, Positive, Seed, Share
from beltrami.config.spec import ConfigFile, RunConfig
from beltrami.config.spec_graph import Spec


class DatasetSpec(Spec):
    kind: Literal["dataset"] = "dataset"
    name: Name
    component: Literal["largest", "all"] = "largest"
    protocol: str = "digl"
    split_seed: Seed = 0


class GraphFolderSpec(Spec):
    kind: Literal["folder"] = "folder"
    path: str
    digest: str  # SHA-256 of the arrays that the run depends on


class RowModelSpec(Spec):
    """The network, :class:`beltrami.model.row_network.RowNetwork`; ``standardise``: subtract the mean of each feature
    and divide by its standard deviation, both over all nodes."""

    feat: Count = 64
    hidden: Count | None = None
    dropout: Share = 0.5
    input_dropout: Share = 0.5
    standardise: bool = True


class RowTrainSpec(Spec):
    """How to train: ``batch`` nodes in a minibatch, the others as in :class:`beltrami.config.spec.TrainSpec`."""

    epochs: Count = 100
    batch: Count = 1024
    optimiser: Literal["adam", "adamw", "adamax", "rmsprop", "sgd"] = "adam"
    lr: Positive = 0.01
    weight_decay: NotNegative = 5e-4
    patience: Count = 100
    ema: Share = 0.0


class RowConfig(ConfigFile):
    """One run on rows: the graph, the times at which its features are diffused and the tolerance, network, training."""

    data: DatasetSpec | GraphFolderSpec
    seed: Seed = 0
    times: tuple[float, ...] = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)
    rtol: Positive = 1e-5
    model: RowModelSpec = RowModelSpec()
    train: RowTrainSpec = RowTrainSpec()
    recipe: Literal["precomputed"] = "precomputed"


class BlockConfig(ConfigFile):
    """One run in blocks on a graph folder: where the graph is, and the settings of the model and its training."""

    graph: GraphFolderSpec
    run: RunConfig
