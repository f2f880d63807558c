"""A user's graph as models take it: features, edges and targets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from beltrami.data.dataset import Dataset
from beltrami.data.graph_table import GraphTable
from beltrami.data.preprocess import Preprocessing
from beltrami.data.target import Targets
from beltrami.geometry import scale_for_squares
from beltrami.graph import Edges
from beltrami.graph.sparse_matrix import to_scipy

NEIGHBOURS = 10  # of each node of a table without edges
Distances = NDArray[np.float64]
Nodes = NDArray[np.int64]
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-6, 1e6  # of an edge, relative to the median


@dataclass(frozen=True, eq=False)
class LabelledGraph:
    """A graph with features and, at some nodes, targets.

    ``ids`` are the user's names of the nodes; ``x`` the features (n, d), float32, dense or sparse; ``targets``
    None for a graph that is only predicted on; ``neighbours`` is the k of :func:`nearest` if the edges are those of it,
    0 if they were given.
    """

    name: str
    ids: Sequence[str]
    x: Tensor
    edges: Edges
    targets: Targets | None = None
    neighbours: int = 0

    @property
    def num_nodes(self) -> int:
        return len(self.ids)

    @property
    def by_features(self) -> bool:
        """Whether the edges were made from the features."""
        return self.neighbours > 0

    @staticmethod
    def of_table(
        table: GraphTable, preprocessing: Preprocessing, targets: Targets | None = None, *, neighbours: int = NEIGHBOURS
    ) -> "LabelledGraph":
        """Return the graph of a table; without edges, each node is joined to its ``neighbours`` nearest ones."""
        x = preprocessing(table.columns, table.x, ids=table.ids)
        if table.edge_index is None and preprocessing.nodes:
            raise ValueError(
                f"{table.source} has neither edges nor columns that differ between nodes: give edges, or columns."
            )
        if table.edge_index is None:
            return LabelledGraph(table.source, table.ids, x, nearest(x, k=neighbours), targets, neighbours)
        edges = Edges.build(table.edge_index, num_nodes=table.num_nodes, weight=_relative(table.weight))
        return LabelledGraph(table.source, table.ids, x, edges, targets)

    def followed_by(self, table: GraphTable, preprocessing: Preprocessing) -> "LabelledGraph":
        """Return the graph of another table, for the models that were trained on this graph; its nodes come first.

        Each row of a table without edges receives from the nearest rows of this graph, and sends to none: the state of
        a new row depends on its own columns and on the training, not on the other new rows. This graph must then be one
        without given edges.
        """
        if table.edge_index is not None:
            return LabelledGraph.of_table(table, preprocessing)
        x = preprocessing(table.columns, table.x)
        if not self.by_features:
            raise ValueError(f"{table.source} has no edges, and the model was trained with edges: give `--edges`.")
        edges = attached(x, self.x, self.edges, k=self.neighbours)
        return LabelledGraph(
            table.source, [*table.ids, *self.ids], torch.cat((x, self.x)), edges, neighbours=self.neighbours
        )

    @staticmethod
    def of_dataset(dataset: Dataset) -> "tuple[LabelledGraph, Preprocessing]":
        """Return a named dataset with preprocessed features, and the rules; ids are the numbers of the nodes from 0."""
        classes = tuple(str(c) for c in range(dataset.num_classes))
        edges = Edges.build(dataset.edge_index, num_nodes=dataset.num_nodes)
        preprocessing = Preprocessing.learn({}, dataset.x)
        x, ids = preprocessing({}, dataset.x), [str(node) for node in range(dataset.num_nodes)]
        return LabelledGraph(dataset.name, ids, x, edges, Targets("classes", classes, dataset.y)), preprocessing


def nearest(x: Tensor, *, k: int = NEIGHBOURS) -> Edges:
    r"""Return edges, in both directions, between each node and its ``k`` nearest by Euclidean distance of the features;
    fewer where there are not so many nodes. (n, d) -> n nodes.

    .. math:: w_{ij} = e^{-d_{ij}^2 / (\sigma_i \sigma_j)}, at least 1e-6,

    where :math:`\sigma_i` is the distance of node i to the k-th of them (Zelnik-Manor and Perona, 2004), so that the
    weights follow the density of the nodes.
    """
    n = x.shape[0]
    k = min(k, n - 1)
    if k < 1 or x.shape[1] == 0:
        return Edges.build(torch.zeros(2, 0, dtype=torch.long), num_nodes=n)
    distance, j = _search(x, k)
    i, widths = np.repeat(np.arange(n), k), distance[:, -1]
    weight = csr_array((_similarity(distance, widths, widths[j]).ravel(), (i, j.ravel())), shape=(n, n))
    both = csr_array(weight.maximum(weight.T)).tocoo()
    edge_index = torch.from_numpy(np.stack((both.col, both.row)).astype(np.int64))
    return Edges.build(edge_index, num_nodes=n, weight=torch.from_numpy(both.data.astype(np.float32)))


def attached(new: Tensor, x: Tensor, edges: Edges, *, k: int) -> Edges:
    """Return ``edges`` between the nodes of ``x`` (n, d), counted after those of ``new`` (m, d), and edges to each new
    node from the ``k`` nearest of the others, weighted as by :func:`nearest`."""
    first, k = len(new), min(k, x.shape[0])
    old = torch.stack((edges.j, edges.i)) + first
    weight = torch.ones(edges.num_edges) if edges.weight is None else edges.weight
    if k > 0 and x.shape[1] > 0 and first > 0:
        distance, j = _search(x, k, new)
        widths = _search(x, min(k, x.shape[0] - 1))[0][:, -1] if x.shape[0] > 1 else np.ones(1)
        ends = np.stack((j.ravel() + first, np.repeat(np.arange(first), k)))
        old = torch.cat((torch.from_numpy(ends), old), 1)
        similar = _similarity(distance, distance[:, -1], widths[j]).astype(np.float32)
        weight = torch.cat((torch.from_numpy(similar.ravel()), weight))
    return Edges.build(old, num_nodes=first + edges.num_nodes, weight=weight)


def _search(x: Tensor, k: int, new: Tensor | None = None) -> tuple[Distances, Nodes]:
    """Return distances and numbers of the ``k`` nearest nodes of ``x``, for each node but itself, or each new one."""
    from sklearn.neighbors import NearestNeighbors

    entries = [
        each if each.layout == torch.strided else each.coalesce().values().reshape(-1, 1)
        for each in (x, new)
        if each is not None
    ]
    scale = min(map(scale_for_squares, entries))
    arrays = [
        None if each is None else (each * scale).numpy() if each.layout == torch.strided else to_scipy(each * scale)
        for each in (x, new)
    ]
    distance, j = NearestNeighbors(n_neighbors=k).fit(arrays[0]).kneighbors(arrays[1])
    return distance.astype(np.float64), j.astype(np.int64)


def _similarity(distance: Distances, receiver: Distances, sender: Distances) -> Distances:
    """Return the weights of edges (n, k) from distances, widths (n,) at receivers and (n, k) at senders."""
    product = receiver[:, None] * sender
    ratio = np.divide(distance**2, product, out=np.where(distance > 0, np.inf, 0.0), where=product > 0)
    return np.asarray(np.maximum(np.exp(-ratio), SMALLEST_WEIGHT))


def _relative(weight: Tensor | None) -> Tensor | None:
    """Return weights divided by their median, so that their unit does not matter, cut off at a millionth and a million
    of it; self-loops, which a model may add, have weights near 1."""
    if weight is None or not len(weight):
        return weight
    return (weight.double() / weight.double().median()).clamp(SMALLEST_WEIGHT, LARGEST_WEIGHT).float()
