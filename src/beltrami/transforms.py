"""Transforms of PyG's ``Data``: positional encodings as ``data.pos``, and rewirings of its graph.

They are used as those of ``torch_geometric.transforms``: called on a ``Data`` object, given to a dataset, or composed.
"""

from abc import ABC
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from beltrami.arguments import Seed, checked
from beltrami.geometry import Metric
from beltrami.graph import Edges, as_edges
from beltrami.graph.edge_values import unpack_graph
from beltrami.position import (
    PPR,
    DeepWalk,
    Encoding,
    Heat,
    Hyperbolic,
    LaplacianEigenvectors,
    ReturnProbabilities,
)
from beltrami.stencil import KNN, Chain, Stencil, Symmetric, TopK

OF_EDGES = ("edge_weight", "edge_attr")


class _EncodingTransform(BaseTransform, ABC):  # type: ignore[misc]  # PyG's classes have no types
    """Write the positions of an encoding to ``data[attr_name]``; random encodings draw from ``seed``."""

    def __init__(self, encoding: Encoding, attr_name: str, seed: int) -> None:
        self.encoding, self.attr_name, self.seed = encoding, attr_name, seed

    def forward(self, data: Data) -> Data:
        generator = torch.Generator().manual_seed(self.seed)
        data[self.attr_name] = self.encoding(_edges_of(data), generator)
        return data

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.encoding!r}, attr_name={self.attr_name!r})"


@checked
class AddPositions(_EncodingTransform):
    """Write the positions of any encoding of ``beltrami.position`` to ``data[attr_name]``."""

    def __init__(self, encoding: Encoding, *, attr_name: str = "pos", seed: Seed = 0) -> None:
        super().__init__(encoding, attr_name, seed)


@checked
class AddPPR(_EncodingTransform):
    """Add rows of personalised PageRank (:class:`~beltrami.position.PPR`), sparse (n, n); they are as wide as the graph
    has nodes, so that they do not serve datasets of many graphs."""

    def __init__(self, *, restart: float = 0.05, top: int | None = 64, attr_name: str = "pos") -> None:
        super().__init__(PPR(restart=restart, top=top), attr_name, 0)


@checked
class AddHeat(_EncodingTransform):
    """Add rows of the heat kernel (:class:`~beltrami.position.Heat`), sparse (n, n)."""

    def __init__(self, time: float, *, top: int | None = 64, attr_name: str = "pos") -> None:
        super().__init__(Heat(time=time, top=top), attr_name, 0)


@checked
class AddLaplacianEigenvectors(_EncodingTransform):
    """Add the Laplacian's slow modes (:class:`~beltrami.position.LaplacianEigenvectors`), (n, channels)."""

    def __init__(self, channels: int, *, attr_name: str = "pos") -> None:
        super().__init__(LaplacianEigenvectors(channels), attr_name, 0)


@checked
class AddReturnProbabilities(_EncodingTransform):
    """Add return probabilities of random walks (:class:`~beltrami.position.ReturnProbabilities`), (n, steps)."""

    def __init__(self, steps: int, *, attr_name: str = "pos") -> None:
        super().__init__(ReturnProbabilities(steps), attr_name, 0)


@checked
class AddDeepWalk(_EncodingTransform):
    """Add DeepWalk's positions (:class:`~beltrami.position.DeepWalk`), (n, channels)."""

    def __init__(
        self,
        channels: int,
        *,
        walk_length: int = 80,
        context: int = 20,
        walks_per_node: int = 16,
        attr_name: str = "pos",
        seed: Seed = 0,
    ) -> None:
        encoding = DeepWalk(channels, walk_length=walk_length, context=context, walks_per_node=walks_per_node)
        super().__init__(encoding, attr_name, seed)


@checked
class AddHyperbolic(_EncodingTransform):
    """Add points of the Poincaré ball (:class:`~beltrami.position.Hyperbolic`), (n, channels)."""

    def __init__(
        self, channels: int, *, epochs: int = 60, negatives: int = 10, attr_name: str = "pos", seed: Seed = 0
    ) -> None:
        super().__init__(Hyperbolic(channels, epochs=epochs, negatives=negatives), attr_name, seed)


class _RewiringTransform(BaseTransform, ABC):  # type: ignore[misc]
    """Replace the graph by that of a stencil, which may look at ``data[attr_name]``.

    ``edge_weight`` becomes that of the new graph, if it has weights; the weights and features of old edges are removed.
    """

    def __init__(self, stencil: Stencil, attr_name: str) -> None:
        self.stencil, self.attr_name = stencil, attr_name

    def forward(self, data: Data) -> Data:
        edges = _edges_of(data)
        coordinates = data[self.attr_name] if self.stencil.synchronises else torch.empty(edges.num_nodes, 0)
        rewired = self.stencil(coordinates, edges)
        for name in OF_EDGES:
            if name in data:
                del data[name]
        data.edge_index = rewired.edge_index
        if rewired.weight is not None:
            data.edge_weight = rewired.weight
        return data

    def __repr__(self) -> str:
        where = f", attr_name={self.attr_name!r}" if self.stencil.synchronises else ""
        return f"{type(self).__name__}({self.stencil!r}{where})"


@checked
class Rewire(_RewiringTransform):
    """Replace the graph by that of any stencil of ``beltrami.stencil``; ``data[attr_name]`` stands for the state of the
    flow, where the stencil depends on it."""

    def __init__(self, stencil: Stencil, *, attr_name: str = "x") -> None:
        super().__init__(stencil, attr_name)


@checked
class RewireKNN(_RewiringTransform):
    """Connect each node to its ``k`` nearest nodes by ``data[attr_name]`` (:class:`~beltrami.stencil.KNN`), in both
    directions if ``symmetric``."""

    def __init__(self, k: int, *, metric: Metric | None = None, symmetric: bool = True, attr_name: str = "x") -> None:
        knn = KNN(k) if metric is None else KNN(k, metric=metric)
        super().__init__(Chain(knn, Symmetric()) if symmetric else knn, attr_name)


@checked
class RewireDIGL(_RewiringTransform):
    """Connect each node to the ``k`` nodes of its largest entries of personalised PageRank, which become the weights
    (:class:`~beltrami.stencil.TopK`), in both directions if ``symmetric``."""

    def __init__(self, k: int, *, restart: float = 0.05, symmetric: bool = False) -> None:
        top = TopK(k, restart=restart)
        super().__init__(Chain(top, Symmetric()) if symmetric else top, "x")


class OrderNodes(BaseTransform):  # type: ignore[misc]
    """Number the nodes anew so that neighbours are close in memory, by the reverse Cuthill-McKee order.

    A sparse product then takes 8 to 14% less time on a CPU, on graphs of more than 10,000 nodes
    (``benchmarks/node_order.py``, ``results/bench/order-cpu.json``). All values of nodes follow, and ``data.original``
    is the former number of each node: ``out[data.original] = scores`` has the former order.
    """

    def forward(self, data: Data) -> Data:
        if data.edge_index is None:
            raise ValueError("OrderNodes needs `data.edge_index`, (2, m).")
        order = cache_friendly_order(data.edge_index, num_nodes=data.num_nodes)
        place = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
        for name, value in data.to_dict().items():
            if name != "edge_index" and isinstance(value, Tensor) and data.is_node_attr(name):
                data[name] = value.index_select(0, order)
        data.edge_index, data.original = place[data.edge_index], order
        return data


def cache_friendly_order(edge_index: Tensor, *, num_nodes: int) -> Tensor:
    """Return the nodes in the reverse Cuthill-McKee order of the graph without directions, (n,)."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    j, i = edge_index.cpu().numpy()
    matrix = coo_matrix((np.ones(len(j), dtype=np.int8), (i, j)), shape=(num_nodes, num_nodes)).tocsr()
    order = reverse_cuthill_mckee(matrix + matrix.T, symmetric_mode=True).astype(np.int64)
    return torch.from_numpy(order).to(edge_index.device)


def _edges_of(data: Any) -> Edges:
    """Return the graph of a ``Data`` object with the weights of its edges, if they have any."""
    graph, weight, _ = unpack_graph(data)
    return as_edges(graph, num_nodes=data.num_nodes, weight=weight)
