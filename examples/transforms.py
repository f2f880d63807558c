"""Positions and rewiring as PyG transforms, composed with PyG's own: BLEND on DIGL's graph with PageRank positions."""

import argparse

import torch
import torch_geometric.transforms as T
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.utils import stochastic_blockmodel_graph

from beltrami import BLEND
from beltrami.transforms import AddPPR, RewireDIGL


def main() -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=150, help="of each of the three blocks")
    parser.add_argument("--epochs", type=int, default=60)
    options = parser.parse_args()
    torch.manual_seed(0)
    n = options.nodes
    probabilities = 0.5 / n + 5.5 / n * torch.eye(3)  # on average six neighbours in the own block, one in the others
    data = Data(
        x=torch.randn(3 * n, 8),  # the features know nothing of the blocks
        edge_index=stochastic_blockmodel_graph([n] * 3, probabilities),
        y=torch.arange(3).repeat_interleave(n),
    )
    train = torch.arange(3 * n) % 10 == 0
    transform = T.Compose([T.ToUndirected(), AddPPR(top=64), RewireDIGL(16, symmetric=True)])
    data = transform(data)
    print(transform)
    model = BLEND(8, 16, 3, pos_channels=data.pos.shape[1], pos_hidden_channels=32)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-3)
    for _ in range(options.epochs):
        optimiser.zero_grad()
        F.cross_entropy(model(data)[train], data.y[train]).backward()
        optimiser.step()
    with torch.no_grad():
        right = (model.eval()(data).argmax(1) == data.y)[~train]
    print(f"test accuracy {right.float().mean():.3f} with {int(train.sum())} labels")
    return float(right.float().mean())


if __name__ == "__main__":
    main()
