"""Classify generated graphs: BeltramiConv, the mean over the nodes of each graph, and a linear layer.

A graph is a ring lattice or a random graph of the same number of edges. Its features are the return probabilities of
random walks, so that the triangles of the lattice show.
"""

import argparse
import random

import networkx as nx
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import global_mean_pool
from torch_geometric.utils import from_networkx

from beltrami import BeltramiConv
from beltrami.transforms import AddReturnProbabilities

STEPS = 6


def make_graphs(count: int) -> list[Data]:
    transform, graphs = AddReturnProbabilities(STEPS, attr_name="x"), []
    for k in range(count):
        n = random.randint(12, 24)
        lattice = nx.watts_strogatz_graph(n, 4, 0.2, seed=k)
        graph = lattice if k % 2 else nx.gnm_random_graph(n, lattice.number_of_edges(), seed=k)
        data = Data(edge_index=from_networkx(graph).edge_index, num_nodes=n, y=torch.tensor([k % 2]))
        graphs.append(transform(data))
    return graphs


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(STEPS, 32), nn.Linear(32, 2)
        self.conv = BeltramiConv(32, time=2.0)

    def forward(self, data: Data) -> Tensor:
        x = self.conv(F.relu(self.encoder(data.x)), data.edge_index)
        out: Tensor = self.decoder(global_mean_pool(F.relu(x), data.batch))
        return out


def main() -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=400)
    parser.add_argument("--epochs", type=int, default=30)
    options = parser.parse_args()
    torch.manual_seed(0)
    random.seed(0)
    graphs = make_graphs(options.graphs)
    held_out = len(graphs) // 4
    train, test = DataLoader(graphs[held_out:], batch_size=32, shuffle=True), DataLoader(graphs[:held_out], 64)
    model = Net()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(options.epochs):
        for batch in train:
            optimiser.zero_grad()
            F.cross_entropy(model(batch), batch.y).backward()
            optimiser.step()
    with torch.no_grad():
        right = sum(int((model(batch).argmax(1) == batch.y).sum()) for batch in test)
    print(f"test accuracy {right / held_out:.3f} on {held_out} graphs")
    return right / held_out


if __name__ == "__main__":
    main()
