"""Rivals: what people run today."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Optimizer

from beltrami.train.cuda_graph import OptimiserStep


class GAT(nn.Module):
    """PyG's graph attention network of two layers with eight heads of width eight, as its authors trained it.

    Args:
        features: of a node.
        classes: to tell apart.
        loops: whether the layers add self-loops at every call, as they do by default; with False the graph has them.
    """

    heads, hidden, dropout = 8, 8, 0.6

    def __init__(self, features: int, classes: int, *, loops: bool = True) -> None:
        from torch_geometric.nn import GATConv

        super().__init__()
        width, drop = self.heads * self.hidden, self.dropout
        self.one = GATConv(features, self.hidden, heads=self.heads, dropout=drop, add_self_loops=loops)
        self.two = GATConv(width, classes, heads=1, concat=False, dropout=drop, add_self_loops=loops)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.dropout(x, self.dropout, self.training)
        x = F.elu(self.one(x, edge_index))
        logits: Tensor = self.two(F.dropout(x, self.dropout, self.training), edge_index)
        return logits


def gat_descent(model: nn.Module, x: Tensor, edge_index: Tensor, y: Tensor, train: Tensor) -> Callable[[], Tensor]:
    """Leaves the gradients of the cross-entropy of the nodes ``train``, a mask or their numbers; returns the loss."""

    def descend() -> Tensor:
        model.train()
        model.zero_grad()
        loss = F.cross_entropy(model(x, edge_index)[train], y[train])
        loss.backward()
        return loss.detach()

    return descend


def gat_optimiser(model: nn.Module) -> Optimizer:
    return torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)


def gat_step(model: nn.Module, x: Tensor, edge_index: Tensor, y: Tensor, train: Tensor) -> Callable[[], Tensor]:
    """One step of training: forward, backward, Adam."""
    descend, optimiser = gat_descent(model, x, edge_index, y, train), gat_optimiser(model)

    def step() -> Tensor:
        loss = descend()
        optimiser.step()
        return loss

    return step


def gat_recorded(model: nn.Module, x: Tensor, edge_index: Tensor, y: Tensor, train: Tensor) -> Callable[[], Tensor]:
    """The same step as a CUDA graph, of a model that adds no loops: to do so is to wait for the device."""
    update = OptimiserStep(
        gat_descent(model, x, edge_index, y, train.nonzero()[:, 0]), gat_optimiser(model), capture=True
    )
    return lambda: update(1)


def gat_inference(model: nn.Module, x: Tensor, edge_index: Tensor) -> Callable[[], Tensor]:
    """Class scores of every node."""

    @torch.no_grad()
    def infer() -> Tensor:
        model.eval()
        scores: Tensor = model(x, edge_index)
        return scores

    return infer
