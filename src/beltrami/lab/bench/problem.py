"""Case: one of the paper's seven graphs, or one of its size where the files are not at hand, ready to be timed."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from beltrami.config import RunConfig, load_recipe, override
from beltrami.config.build import build_model, build_training
from beltrami.config.spec_graph import NoneSpec
from beltrami.config.spec_model import BlendSpec
from beltrami.data import CATALOGUE, Dataset, Facts, available, load
from beltrami.data.synthetic import power_law
from beltrami.graph import Edges, SparseMatrix
from beltrami.model import BLEND, Inputs
from beltrami.run import sparse_where_it_pays
from beltrami.train import Classification, LossStep, seeded
from beltrami.train.cuda_graph import OptimiserStep, replayed, should_capture

SIZES = ("cora", "citeseer", "pubmed", "coauthor-cs", "computers", "photo", "ogbn-arxiv")
PER_CLASS = 20
WORDS = 30  # non-zeros in a row of made-up features that are words
DENSE = ("ogbn-arxiv", "pubmed")
TIMED: dict[str, tuple[str, ...]] = {
    "cora": (
        *("diffusivity.kind=cosine", "diffusivity.width=128", "diffusivity.heads=8", "diffusivity.over=both"),
        "scheme.time=18.29",
    ),
    "citeseer": ("scheme.time=7.874", "train.self_training=0"),
    "pubmed": (
        *("diffusivity.kind=exp-kernel", "diffusivity.width=16", "diffusivity.over=both", "scheme.time=12.94"),
        "train.self_training=0",
    ),
    "coauthor-cs": (
        *("diffusivity.kind=cosine", "diffusivity.width=8", "diffusivity.heads=4", "scheme.time=3.126"),
        "train.consistency.kind=none",
    ),
}
"""What is timed where recipes have moved on: the paper's widths and times, so that a speed stays comparable with the
paper's and with yesterday's."""


@dataclass(frozen=True)
class BenchProblem:
    """A graph with features, labels and training nodes on a device, and the settings of the paper's model for it."""

    name: str
    origin: str
    dataset: Dataset
    x: Tensor | SparseMatrix
    edges: Edges
    train: Tensor
    config: RunConfig

    @staticmethod
    def load(name: str, *, device: str) -> "BenchProblem":
        at_hand = available(name).is_local
        data = load(name).largest_component() if at_hand else made_up(CATALOGUE[name])
        return BenchProblem(
            name=name,
            origin="real" if at_hand else "generated",
            dataset=data.to(device),
            x=sparse_where_it_pays(data.x).to(device),
            edges=Edges.build(data.edge_index, num_nodes=data.num_nodes).to(device),
            train=_some_of_each_class(data.y).to(device),
            config=settings(name),
        )

    def model(self, config: RunConfig) -> tuple[BLEND, Inputs]:
        """A fresh model, and what it runs on."""
        with seeded(0):
            model = build_model(config, features=self.x.shape[1], positions=0, num_classes=self.dataset.num_classes).to(
                self.edges.device
            )
        return model, model.prepare(self.x, self.edges)

    def step(self, config: RunConfig, *, record: bool | None) -> Callable[[], Tensor]:
        """One step of training: forward, backward and the optimiser; ``record`` as ``Training`` has it."""
        model, inputs = self.model(config)
        training = build_training(config.train)
        task = Classification(model.num_classes)
        loss_step = LossStep(model, inputs, self.dataset.y, self.train, training.consistency, task)
        optimiser = training.make_optimiser(dict(model.named_parameters()))
        update = OptimiserStep(loss_step, optimiser, buffers=model.buffers(), capture=should_capture(model, record))
        return lambda: update(1)

    def inference(self, config: RunConfig, *, record: bool | None) -> Callable[[], Tensor]:
        """Class scores of every node at the terminal time."""
        model, inputs = self.model(config)

        @torch.no_grad()
        def infer() -> Tensor:
            model.eval()
            return model.run(inputs).logits

        return replayed(infer, device=self.edges.device, capture=should_capture(model, record))


def settings(name: str) -> RunConfig:
    """What is timed of a recipe; positions are left out, since reading them is no part of the flow."""
    config = override(load_recipe("blend", name), TIMED.get(name, ()))
    spec = config.model
    assert isinstance(spec, BlendSpec)
    width = spec.feat + (spec.pos if name == "ogbn-arxiv" else 0)  # there the state is as wide as with positions
    return replace(config, position=NoneSpec(), model=replace(spec, feat=width, pos=BlendSpec().pos))


def made_up(facts: Facts) -> Dataset:
    """A power-law graph of the same size, with features of the same width and kind."""
    name = next(name for name, other in CATALOGUE.items() if other is facts)
    data = power_law(facts.nodes, facts.edges, seed=0, features=facts.features, classes=facts.classes)
    if name not in DENSE:
        random = torch.Generator().manual_seed(0)
        words = torch.randint(facts.features, (facts.nodes, WORDS), generator=random)
        data = replace(data, x=torch.zeros(facts.nodes, facts.features).scatter_(1, words, 1.0))
    return replace(data, name=name)


def _some_of_each_class(y: Tensor) -> Tensor:
    chosen = torch.zeros(len(y), dtype=torch.bool)
    for c in range(int(y.max()) + 1):
        chosen[(y == c).nonzero()[:PER_CLASS, 0]] = True
    return chosen
