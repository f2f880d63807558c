"""Edge features in the attention: nodes have friends, mostly of their own class, and strangers of any class.

The features of an edge tell which of the two it is. With them BLEND diffuses along friendships, without them along all
edges.
"""

import argparse

import torch
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.utils import coalesce

from beltrami import BLEND


def make_graph(nodes: int) -> Data:
    y = torch.randint(3, (nodes,))
    x = F.one_hot(y, 3) + 2.0 * torch.randn(nodes, 3)
    i, j = torch.randint(nodes, (2, 20 * nodes))
    friends = (y[i] == y[j]) | (torch.rand(len(i)) < 0.05)
    strangers = torch.rand(len(i)) < 0.5
    kind = torch.where(strangers, 0, torch.where(friends, 1, -1))
    i, j, kind = i[kind >= 0], j[kind >= 0], kind[kind >= 0]
    edge_index, kind = coalesce(torch.stack((torch.cat((i, j)), torch.cat((j, i)))), kind.repeat(2), reduce="max")
    return Data(
        x=x, edge_index=edge_index, edge_attr=F.one_hot(kind, 2).float(), y=y, train=torch.arange(nodes) % 2 == 0
    )


def accuracy(data: Data, *, edge_dim: int | None, epochs: int) -> float:
    torch.manual_seed(0)
    model = BLEND(3, 16, 3, edge_dim=edge_dim, time=2.0, dropout=0.1)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(epochs):
        optimiser.zero_grad()
        F.cross_entropy(model(data)[data.train], data.y[data.train]).backward()
        optimiser.step()
    with torch.no_grad():
        right = model.eval()(data).argmax(1) == data.y
    return float(right[~data.train].float().mean())


def main() -> tuple[float, float]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=600)
    parser.add_argument("--epochs", type=int, default=60)
    options = parser.parse_args()
    torch.manual_seed(0)
    data = make_graph(options.nodes)
    without, with_features = (accuracy(data, edge_dim=dim, epochs=options.epochs) for dim in (None, 2))
    print(f"test accuracy {without:.3f} without edge features, {with_features:.3f} with them")
    return without, with_features


if __name__ == "__main__":
    main()
