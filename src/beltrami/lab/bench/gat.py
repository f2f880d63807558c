"""The baseline of the benchmarks: PyG's graph attention network."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from beltrami.lab.bench.measure import Work
from beltrami.lab.bench.problem import BenchProblem
from beltrami.train.cuda_graph import OptimiserStep, replayed


class PyGGAT(nn.Module):
    """PyG's GAT of two layers with eight heads of width eight, as its authors trained it.

    With ``loops`` the layers add self-loops in every call, as by default; without, the graph must have them.
    """

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
    x, y, edge_index = problem.dataset.x, problem.dataset.y, _edge_index(problem, model)
    train = problem.train if model.loops else problem.train.nonzero()[:, 0]
    optimiser = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)

    def loss_step() -> Tensor:
        model.train()
        model.zero_grad()
        loss = F.cross_entropy(model(x, edge_index)[train], y[train])
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
