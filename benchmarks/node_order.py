"""Time a sparse product on graphs whose nodes are in their given order, in a cache-friendly one, and in a random one.

    python benchmarks/node_order.py [--device cuda] [--out results/bench/order-cpu.json]

64 channels, one thread on a CPU. ogbn-arxiv is a generated graph of its size where its files are not here.
"""

import argparse
import json
from pathlib import Path

import torch

from beltrami.data import available, load
from beltrami.graph import Edges, aggregate
from beltrami.lab.bench.measure import Timer
from beltrami.lab.bench.problem import generated
from beltrami.transforms import cache_friendly_order

SIZES = ("cora", "pubmed", "coauthor-cs", "computers", "ogbn-arxiv")
CHANNELS = 64


def measured(size: str, device: str) -> dict[str, object]:
    data = load(size) if available(size).is_local else generated(size)
    n, edge_index = data.num_nodes, data.edge_index
    generator = torch.Generator().manual_seed(0)
    orders = {
        "given": torch.arange(n),
        "ordered": cache_friendly_order(edge_index, num_nodes=n),
        "random": torch.randperm(n, generator=generator),
    }
    z, a = torch.randn(n, CHANNELS, device=device), torch.rand(edge_index.shape[1], device=device)
    graphs = {
        name: Edges.build(torch.empty_like(order).scatter_(0, order, torch.arange(n))[edge_index], num_nodes=n).to(
            device
        )
        for name, order in orders.items()
    }
    works = {name: (lambda edges=edges: aggregate(a, z, edges)) for name, edges in graphs.items()}
    taken = Timer(device, rounds=15).compare(works)
    return {"size": size, "nodes": n, **{f"{name}_ms": 1e3 * seconds for name, seconds in taken.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [measured(size, options.device) for size in SIZES]
    for row in rows:
        print(row)
    if options.out is not None:
        options.out.write_text(
            json.dumps({"device": options.device, "channels": CHANNELS, "rows": rows}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
