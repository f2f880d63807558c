"""A user's graph as models take it: features, edges and targets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from beltrami.data.dataset import Dataset, undirected
from beltrami.data.graph_table import GraphTable
from beltrami.data.preprocess import Preprocessing
from beltrami.data.target import Targets
from beltrami.geometry import scale_for_squares
from beltrami.graph import Edges
from beltrami.graph.sparse_matrix import to_scipy

NEIGHBOURS = 10  # of each node of a table without edges
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-6, 1e6  # of an edge, relative to the median


@dataclass(frozen=True, eq=False)
class LabelledGraph:
    """A graph with features and, at some nodes, targets.

    ``ids`` are the user's names of the nodes; ``x`` the features (n, d), float32, dense or sparse; ``targets``
    None for a graph that is only predicted on; ``by_features`` says that the edges are those of :func:`nearest`.
    """

    name: str
    ids: Sequence[str]
    x: Tensor
    edges: Edges
    targets: Targets | None = None
    by_features: bool = False

    @property
    def num_nodes(self) -> int:
        return len(self.ids)

    @staticmethod
    def of_table(table: GraphTable, preprocessing: Preprocessing, targets: Targets | None = None) -> "LabelledGraph":
        """Return the graph of a table; without edges, each node is joined to its nearest ones by :func:`nearest`."""
        x = preprocessing(table.columns, table.x, ids=table.ids)
        if table.edge_index is None and preprocessing.nodes:
            raise ValueError(
                f"{table.source} has neither edges nor columns that differ between nodes: give edges, or columns."
            )
        edge_index = nearest(x) if table.edge_index is None else table.edge_index
        edges = Edges.build(edge_index, num_nodes=table.num_nodes, weight=_relative(table.weight))
        return LabelledGraph(table.source, table.ids, x, edges, targets, table.edge_index is None)

    def followed_by(self, table: GraphTable, preprocessing: Preprocessing) -> "LabelledGraph":
        """Return the graph of another table, for the models that were trained on this graph; its nodes come first.

        A table without edges is joined to the rows of this graph whose ids it lacks, each row to its nearest ones: a
        few new rows alone would be neighbours however far they are. This graph must then be one without given edges.
        """
        if table.edge_index is not None:
            return LabelledGraph.of_table(table, preprocessing)
        x = preprocessing(table.columns, table.x)
        if not self.by_features:
            raise ValueError(f"{table.source} has no edges, and the model was trained with edges: give `--edges`.")
        new = set(table.ids)
        kept = [node for node, name in enumerate(self.ids) if name not in new]
        x = torch.cat((x, self.x.index_select(0, torch.tensor(kept).long())))
        ids = [*table.ids, *(self.ids[node] for node in kept)]
        return LabelledGraph(table.source, ids, x, Edges.build(nearest(x), num_nodes=len(ids)), by_features=True)

    @staticmethod
    def of_dataset(dataset: Dataset) -> "tuple[LabelledGraph, Preprocessing]":
        """Return a named dataset with preprocessed features, and the rules; ids are the numbers of the nodes from 0."""
        classes = tuple(str(c) for c in range(dataset.num_classes))
        edges = Edges.build(dataset.edge_index, num_nodes=dataset.num_nodes)
        preprocessing = Preprocessing.learn({}, dataset.x)
        x, ids = preprocessing({}, dataset.x), [str(node) for node in range(dataset.num_nodes)]
        return LabelledGraph(dataset.name, ids, x, edges, Targets("classes", classes, dataset.y)), preprocessing


def nearest(x: Tensor, *, k: int = NEIGHBOURS) -> Tensor:
    """Return edges, in both directions, between each node and its ``k`` nearest by Euclidean distance of the features;
    fewer where there are not so many nodes. (n, d) -> (2, m)."""
    from sklearn.neighbors import NearestNeighbors

    n = x.shape[0]
    k = min(k, n - 1)
    if k < 1 or x.shape[1] == 0:
        return torch.zeros(2, 0, dtype=torch.long)
    if (scale := scale_for_squares(x if x.layout == torch.strided else x.to_sparse_coo().coalesce().values())) != 1.0:
        x = x * scale
    values = x.numpy() if x.layout == torch.strided else to_scipy(x)
    found = NearestNeighbors(n_neighbors=k).fit(values).kneighbors(return_distance=False)
    i = np.repeat(np.arange(n), k)
    return undirected(torch.from_numpy(np.stack((found.ravel().astype(np.int64), i))), num_nodes=n)


def _relative(weight: Tensor | None) -> Tensor | None:
    """Return weights divided by their median, so that their unit does not matter, cut off at a millionth and a million
    of it; self-loops, which a model may add, have weights near 1."""
    if weight is None or not len(weight):
        return weight
    return (weight.double() / weight.double().median()).clamp(SMALLEST_WEIGHT, LARGEST_WEIGHT).float()
