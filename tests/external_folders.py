"""Graph folders for tests."""

from pathlib import Path

import numpy as np
from torch import Tensor

from beltrami.data.graph_folder import GraphFolder
from beltrami.external.edge_sort import new_graph_folder
from beltrami.graph import Edges


def folder_of(edges: Edges, path: Path, **arrays: Tensor) -> GraphFolder:
    """Write edges and arrays of the nodes to a graph folder."""
    weight = None if edges.weight is None else edges.weight.numpy()
    with new_graph_folder(path, num_nodes=edges.num_nodes, weighted=weight is not None, memory=10**6) as sorter:
        sorter.add(edges.j.numpy(), edges.i.numpy(), weight)
        for name, tensor in arrays.items():
            np.save(sorter.folder / f"{name}.npy", tensor.numpy())
    return GraphFolder.open(path)
