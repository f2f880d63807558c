"""Small graphs in folders and networks on their rows, for the tests of the recipe precomputed."""

from pathlib import Path

import numpy as np
import torch
from toy import two_cliques

from beltrami.data import Dataset
from beltrami.data.array_file import Array, new_array
from beltrami.data.graph_folder import GraphFolder, finish_graph_folder, write_graph_folder
from beltrami.model.row_network import RowNetwork
from beltrami.train import seeded

TIMES = (0.0, 0.5, 3.0)


def toy_folder(path: Path, *, size: int = 10) -> GraphFolder:
    """Two cliques as a graph folder; features in double precision."""
    toy = two_cliques(size)
    write_graph_folder(path, Dataset("toy", toy.x, toy.edge_index, toy.y), toy.split)
    np.save(path / "x.npy", toy.x.double().numpy())
    return GraphFolder.open(path)


def ring_folder(path: Path, *, nodes: int, features: int) -> GraphFolder:
    """A ring with random features, the first of which tells two classes apart; a fifth of the nodes has a role."""
    random = np.random.default_rng(0)
    y = (np.arange(nodes) * 2 // nodes).astype(np.int64)
    x = random.standard_normal((nodes, features), dtype=np.float32)
    x[:, 0] += 2 * (2 * y - 1)
    neighbours = np.sort(np.stack(((np.arange(nodes) - 1) % nodes, (np.arange(nodes) + 1) % nodes), axis=1), axis=1)
    role = random.choice(4, nodes, p=(0.8, 0.1, 0.05, 0.05)).astype(np.uint8)
    arrays: dict[str, Array] = {
        "ptr": 2 * np.arange(nodes + 1),
        "index": neighbours.flatten(),
        "x": x,
        "y": y,
        "role": role,
    }
    for name, values in arrays.items():
        with new_array(path / f"{name}.npy", shape=values.shape, dtype=values.dtype) as out:
            out[...] = values
    return finish_graph_folder(path, num_nodes=nodes, num_edges=2 * nodes)


def double_network(features: int = 6, **settings: object) -> RowNetwork:
    """A network in double precision whose mixture is not uniform, from seed 0."""
    with seeded(0):
        model = RowNetwork(features, 2, times=TIMES, feat=8, **settings).double()  # type: ignore[arg-type]
        torch.nn.init.normal_(model.mixture)
    return model
