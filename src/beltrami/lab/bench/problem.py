"""Problems to time: one of the paper's seven graphs, or a generated one of its size if the files are not available; and
the baseline, PyG's graph attention network."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from beltrami.config import RunConfig, load_recipe, override
from beltrami.config.build import build_model, build_training
from beltrami.config.spec_graph import NoneSpec
from beltrami.config.spec_model import BlendSpec
from beltrami.data import CATALOGUE, Dataset, available, load
from beltrami.data.synthetic import power_law
from beltrami.flow import LinearFlow
from beltrami.graph import Edges, SparseMatrix
from beltrami.graph.sparse_matrix import sparse_where_it_pays
from beltrami.lab.bench.measure import Work
from beltrami.model import BLEND, Inputs
from beltrami.model.captured_graph import replayed
from beltrami.train import Classification, LossStep, seeded
from beltrami.train.cuda_graph import OptimiserStep, should_capture

Scores = Callable[[], Tensor]
SIZES = ("cora", "citeseer", "pubmed", "coauthor-cs", "computers", "photo", "ogbn-arxiv")
PER_CLASS = 20
WORDS = 30  # non-zeros in a row of generated features
DENSE = ("ogbn-arxiv", "pubmed")
TIMED = {
    "cora": "diffusivity.kind=cosine diffusivity.width=128 diffusivity.heads=8 diffusivity.over=both scheme.time=18.29",
    "citeseer": "scheme.time=7.874 train.self_training=0",
    "pubmed": "diffusivity.kind=exp-kernel diffusivity.width=16 diffusivity.over=both scheme.time=12.94 "
    "train.self_training=0",
    "coauthor-cs": "diffusivity.kind=cosine diffusivity.width=8 diffusivity.heads=4 scheme.time=3.126 "
    "train.consistency.kind=none",
}
"""Settings that are timed in place of the recipe's: the paper's widths and times, for comparable speeds."""


@dataclass(frozen=True)
class BenchProblem:
    """A graph with features, labels and training nodes on a device, and the settings to time."""

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
        data = load(name).largest_component() if at_hand else generated(name)
        first = torch.cat([(data.y == c).nonzero()[:PER_CLASS, 0] for c in range(data.num_classes)])
        return BenchProblem(
            name=name,
            origin="real" if at_hand else "generated",
            dataset=data.to(device),
            x=sparse_where_it_pays(data.x).to(device),
            edges=Edges.build(data.edge_index, num_nodes=data.num_nodes).to(device),
            train=torch.isin(torch.arange(data.num_nodes), first).to(device),
            config=timed_config(name),
        )

    def model(self, config: RunConfig) -> tuple[BLEND, Inputs]:
        """Return a new model and its inputs."""
        with seeded(0):
            model = build_model(config, features=self.x.shape[1], positions=0, num_classes=self.dataset.num_classes)
        model = model.to(self.edges.device)
        return model, model.prepare(self.x, self.edges)

    def step(
        self, config: RunConfig, *, record: bool | None, storage: torch.dtype | None = None
    ) -> Callable[[], Tensor]:
        """Return a training step: forward, backward and the optimiser; ``record`` as in ``Training``, ``storage`` as in
        ``LinearFlow``."""
        (model, inputs), training = self.model(config), build_training(config.train)
        if storage is not None:
            assert isinstance(model.evolution.flow, LinearFlow)
            model.evolution.flow.storage = storage
        task = Classification(model.num_classes)
        loss_step = LossStep(model, inputs, self.dataset.y, self.train, training.consistency, task)
        optimiser = training.make_optimiser(dict(model.named_parameters()))
        update = OptimiserStep(loss_step, optimiser, buffers=model.buffers(), capture=should_capture(model, record))
        return lambda: update(1)

    def loop(self, config: RunConfig) -> Callable[[], Tensor]:
        """Return a training step as a user writes it: the model called on dense features and edges, a loss, Adam."""
        model, data = self.model(config)[0], self.dataset
        return _plain_step(self, model, lambda: model(data.x, data.edge_index))

    def inference(self, config: RunConfig, *, record: bool | None) -> Callable[[], Tensor]:
        """Return a function that computes the class scores of every node."""
        model, inputs = self.model(config)

        @torch.no_grad()
        def infer() -> Tensor:
            model.eval()
            return model.run(inputs).logits

        return replayed(infer, device=self.edges.device, capture=should_capture(model, record))


def timed_config(name: str) -> RunConfig:
    """Return the settings to time on a dataset, without positions: encoding them is not part of the flow."""
    config = override(load_recipe("blend", name), TIMED.get(name, "").split())
    spec = config.model
    assert isinstance(spec, BlendSpec)
    width = spec.feat + (spec.pos if name == "ogbn-arxiv" else 0)  # keeps the width of the state
    return replace(config, position=NoneSpec(), model=replace(spec, feat=width, pos=BlendSpec().pos))


def generated(name: str) -> Dataset:
    """Return a power-law graph of a dataset's size, with features of the same width and density."""
    facts = CATALOGUE[name]
    data = power_law(facts.nodes, facts.edges, seed=0, features=facts.features, classes=facts.classes)
    if name not in DENSE:
        random = torch.Generator().manual_seed(0)
        words = torch.randint(facts.features, (facts.nodes, WORDS), generator=random)
        data = replace(data, x=torch.zeros(facts.nodes, facts.features).scatter_(1, words, 1.0))
    return replace(data, name=name)


class PyGGAT(nn.Module):
    """PyG's GAT of two layers with eight heads of width eight, as its authors trained it. With ``loops`` the layers add
    self-loops in every call, as by default; without, the graph must have them."""

    heads, hidden, dropout = 8, 8, 0.6

    def __init__(self, features: int, classes: int, *, loops: bool = True) -> None:
        from torch_geometric.nn import GATConv

        super().__init__()
        self.loops = loops
        width, drop = self.heads * self.hidden, self.dropout
        self.one = GATConv(features, self.hidden, heads=self.heads, dropout=drop, add_self_loops=loops)
        self.two = GATConv(width, classes, heads=1, concat=False, dropout=drop, add_self_loops=loops)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.dropout(x, self.dropout, self.training)
        x = F.elu(self.one(x, edge_index))
        logits: Tensor = self.two(F.dropout(x, self.dropout, self.training), edge_index)
        return logits


def make_gat(problem: BenchProblem, *, loops: bool = True) -> PyGGAT:
    """Return a GAT for a problem. Only one that adds no loops can be recorded: adding them synchronises."""
    data = problem.dataset
    return PyGGAT(data.num_features, data.num_classes, loops=loops).to(problem.edges.device)


def gat_step(problem: BenchProblem, model: PyGGAT, *, record: bool = False) -> Work:
    """Return a training step: forward, backward, Adam; recorded as a CUDA graph on request."""
    x, edge_index = problem.dataset.x, _edge_index(problem, model)
    return _plain_step(problem, model, lambda: model(x, edge_index), record=record, indexed=not model.loops)


def _plain_step(
    problem: BenchProblem, model: nn.Module, scores: Scores, *, record: bool = False, indexed: bool = False
) -> Scores:
    """Return a step of a plain loop; training nodes as a mask, or ``indexed``, which a CUDA graph needs."""
    y = problem.dataset.y
    train = problem.train.nonzero()[:, 0] if indexed else problem.train
    optimiser = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)

    def loss_step() -> Tensor:
        model.train()
        model.zero_grad()
        loss = F.cross_entropy(scores()[train], y[train])
        loss.backward()
        return loss.detach()

    def step() -> Tensor:
        loss = loss_step()
        optimiser.step()
        return loss

    if not record:
        return step
    update = OptimiserStep(loss_step, optimiser, capture=True)
    return lambda: update(1)


def gat_inference(problem: BenchProblem, model: PyGGAT, *, record: bool = False) -> Work:
    """Return a function that computes the class scores of every node."""
    x, edge_index = problem.dataset.x, _edge_index(problem, model)

    @torch.no_grad()
    def infer() -> Tensor:
        model.eval()
        scores: Tensor = model(x, edge_index)
        return scores

    return replayed(infer, device=problem.edges.device, capture=True) if record else infer


def _edge_index(problem: BenchProblem, model: PyGGAT) -> Tensor:
    if model.loops:
        return problem.dataset.edge_index
    nodes = torch.arange(problem.dataset.num_nodes, device=problem.edges.device)
    return torch.cat((problem.dataset.edge_index, nodes.expand(2, -1)), dim=1)
