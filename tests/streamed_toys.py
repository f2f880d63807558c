"""A graph with a hub, isolated nodes and self-loops, its folder, and plans of given block sizes."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from beltrami.data.array_file import new_array
from beltrami.data.graph_folder import GraphFolder, finish_graph_folder
from beltrami.graph import Edges
from beltrami.scale.edge_blocks import evenly_spread, row_ranges
from beltrami.scale.memory_plan import MemoryPlan

NODES, FEATURES = 18, 7


def hub_graph() -> Edges:
    """Undirected: node 0 has twelve neighbours, nodes 15 to 17 have none, node 3 has a self-loop."""
    generator = torch.Generator().manual_seed(0)
    random, hub = torch.randint(0, 15, (2, 25), generator=generator), torch.tensor([[0] * 12, [*range(1, 13)]])
    pairs = torch.cat((random, hub), 1)
    pairs = pairs[:, pairs[0] != pairs[1]]
    both = torch.cat((pairs, pairs.flip(0), torch.tensor([[3], [3]])), 1).unique(dim=1)
    return Edges.build(both, num_nodes=NODES)


def write_folder(path: Path, edges: Edges, **arrays: Tensor) -> GraphFolder:
    """Write a graph and further arrays to a folder."""
    path.mkdir()
    named = {"ptr": edges.rows.ptr.long(), "index": edges.rows.index, **arrays}
    for name, tensor in named.items():
        with new_array(path / f"{name}.npy", shape=tuple(tensor.shape), dtype=tensor.numpy().dtype) as out:
            out[...] = tensor.numpy()
    return finish_graph_folder(path, num_nodes=edges.num_nodes, num_edges=edges.num_edges)


def plan_of(edges: Edges, *, columns: int, rows: int, resident: float, limit: int = 2**40) -> MemoryPlan:
    """Return a plan of blocks of so many columns and rows, of which a share is on the device."""
    ranges = row_ranges(edges.rows.ptr.numpy().astype(np.int64), most_edges=2**30, most_rows=rows)
    chosen = evenly_spread(int(resident * len(ranges)), len(ranges))
    return MemoryPlan(columns, tuple(ranges), tuple(chosen), 0, limit)


def random_features() -> Tensor:
    return torch.randn(NODES, FEATURES, generator=torch.Generator().manual_seed(1))
