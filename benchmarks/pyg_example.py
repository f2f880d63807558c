"""Compare BeltramiConv in examples/pyg_cora.py with PyG's GAT: the same data, split, epochs and choice of the epoch.

GAT has the settings of PyG's examples/gat.py. A line per network and seed goes to `results/pyg_example.jsonl`; networks
and seeds that the file has are not trained again.
"""

import argparse
import json
from pathlib import Path
from statistics import mean, stdev
from time import perf_counter

import pyg_cora
import torch
from rows import read_rows
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv

RESULTS = Path(__file__).parents[1] / "results" / "pyg_example.jsonl"
SETTINGS = {
    "beltrami": {"lr": 0.01, "weight_decay": 5e-3},  # chosen on validation accuracy
    "gat": {"lr": 0.005, "weight_decay": 5e-4},
}


class GAT(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv1 = GATConv(in_channels, 8, heads=8, dropout=0.6)
        self.conv2 = GATConv(64, out_channels, heads=1, concat=False, dropout=0.6)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.elu(self.conv1(F.dropout(x, 0.6, self.training), edge_index))
        out: Tensor = self.conv2(F.dropout(x, 0.6, self.training), edge_index)
        return out


def sentence() -> str:
    """Return the mean and standard deviation of the test accuracies of both networks, as docs/pyg.md gives them."""
    found = {name: [100 * row["test"] for row in read_rows(RESULTS) if row["network"] == name] for name in SETTINGS}
    ours, gat = (f"{mean(values):.2f} ± {stdev(values):.2f}" for values in found.values())
    return f"test accuracy {ours}, GAT {gat} ({len(found['gat'])} seeds each)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--network", choices=list(SETTINGS), action="append")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    data = pyg_cora.load_cora().to(options.device)
    known = {(row["network"], row["seed"]) for row in read_rows(options.out)}
    for seed in range(options.seeds):
        for network in options.network or SETTINGS:
            if (network, seed) in known:
                continue
            torch.manual_seed(seed)
            model = GAT(data.num_features, 7) if network == "gat" else pyg_cora.Net(data.num_features, 64, 7)
            began = perf_counter()
            val, test = pyg_cora.train(model.to(options.device), data, epochs=options.epochs, **SETTINGS[network])
            row = {"network": network, "seed": seed, "epochs": options.epochs, "device": options.device}
            row |= {"val": round(val, 4), "test": round(test, 4)}
            with options.out.open("a") as file:
                file.write(json.dumps(row | {"seconds": round(perf_counter() - began, 1)} | SETTINGS[network]) + "\n")
            print(row, flush=True)


if __name__ == "__main__":
    main()
