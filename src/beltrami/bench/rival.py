"""Rivals: what people run today."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class GAT(nn.Module):
    """PyG's graph attention network of two layers with eight heads of width eight, as its authors trained it."""

    def __init__(self, features: int, classes: int, *, heads: int = 8, hidden: int = 8, dropout: float = 0.6) -> None:
        from torch_geometric.nn import GATConv

        super().__init__()
        self.dropout = dropout
        self.one = GATConv(features, hidden, heads=heads, dropout=dropout)
        self.two = GATConv(heads * hidden, classes, heads=1, concat=False, dropout=dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.dropout(x, self.dropout, self.training)
        x = F.elu(self.one(x, edge_index))
        logits: Tensor = self.two(F.dropout(x, self.dropout, self.training), edge_index)
        return logits


def gat_step(model: GAT, x: Tensor, edge_index: Tensor, y: Tensor, train: Tensor) -> Callable[[], Tensor]:
    """One step of training: forward, backward, Adam."""
    optimiser = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)

    def step() -> Tensor:
        model.train()
        optimiser.zero_grad()
        loss = F.cross_entropy(model(x, edge_index)[train], y[train])
        loss.backward()
        optimiser.step()
        return loss

    return step


def gat_inference(model: GAT, x: Tensor, edge_index: Tensor) -> Callable[[], Tensor]:
    """Class scores of every node."""

    @torch.no_grad()
    def infer() -> Tensor:
        model.eval()
        scores: Tensor = model(x, edge_index)
        return scores

    return infer
