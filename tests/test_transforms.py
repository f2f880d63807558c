"""Transforms of PyG's Data: each gives what its encoding or stencil gives, alone and composed."""

import warnings
from typing import Any

import pytest
import torch
from toy import two_cliques

from beltrami import position, stencil
from beltrami.graph import Edges
from beltrami.position import Encoding
from beltrami.stencil import Stencil

pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")

with warnings.catch_warnings(action="ignore"):
    from torch_geometric.data import Batch, Data
    from torch_geometric.transforms import Compose, NormalizeFeatures

from beltrami.transforms import (
    AddDeepWalk,
    AddHeat,
    AddHyperbolic,
    AddLaplacianEigenvectors,
    AddPositions,
    AddPPR,
    AddReturnProbabilities,
    OrderNodes,
    Rewire,
    RewireDIGL,
    RewireKNN,
)

TOY = two_cliques()
EDGES = Edges.build(TOY.edge_index, num_nodes=20)


def data(**more: Any) -> Data:
    return Data(x=TOY.x, edge_index=TOY.edge_index, y=TOY.y, **more)


def dense(x: torch.Tensor) -> torch.Tensor:
    return x if x.layout == torch.strided else x.to_dense()


ENCODINGS: list[tuple[Any, Encoding]] = [
    (AddPPR(restart=0.1, top=5), position.PPR(restart=0.1, top=5)),
    (AddHeat(2.0, top=None), position.Heat(time=2.0, top=None)),
    (AddLaplacianEigenvectors(2), position.LaplacianEigenvectors(2)),
    (AddReturnProbabilities(4), position.ReturnProbabilities(4)),
    (
        AddDeepWalk(4, walk_length=8, context=3, walks_per_node=2),
        position.DeepWalk(4, walk_length=8, context=3, walks_per_node=2),
    ),
    (AddHyperbolic(2, epochs=6, negatives=3), position.Hyperbolic(2, epochs=6, negatives=3)),
    (AddPositions(position.PPR(top=3)), position.PPR(top=3)),
]


@pytest.mark.parametrize(("transform", "encoding"), ENCODINGS, ids=lambda value: type(value).__name__)
def test_positions_are_those_of_the_encoding(transform: Any, encoding: Encoding) -> None:
    given = data()
    found = transform(given)
    expected = encoding(EDGES, torch.Generator().manual_seed(0))
    assert torch.equal(dense(found.pos), dense(expected))
    assert given.pos is None
    assert torch.equal(found.edge_index, TOY.edge_index)
    assert repr(transform) == f"{type(transform).__name__}({encoding!r}, attr_name='pos')"


def test_positions_have_the_name_and_the_seed_that_are_asked_for() -> None:
    transform = AddDeepWalk(4, walk_length=8, context=3, walks_per_node=2, attr_name="walks", seed=1)
    first, second = transform(data()).walks, transform(data()).walks
    assert torch.equal(first, second)
    other = AddDeepWalk(4, walk_length=8, context=3, walks_per_node=2)(data()).pos
    assert not torch.equal(first, other)


STENCILS: list[tuple[Any, Stencil]] = [
    (RewireKNN(3), stencil.Chain(stencil.KNN(3), stencil.Symmetric())),
    (RewireKNN(3, symmetric=False), stencil.KNN(3)),
    (RewireDIGL(4, restart=0.2), stencil.TopK(4, restart=0.2)),
    (RewireDIGL(4, symmetric=True), stencil.Chain(stencil.TopK(4), stencil.Symmetric())),
    (Rewire(stencil.Threshold(0.05)), stencil.Threshold(0.05)),
]


@pytest.mark.parametrize(("transform", "rewiring"), STENCILS, ids=lambda value: type(value).__name__)
def test_the_graph_is_that_of_the_stencil(transform: Any, rewiring: Stencil) -> None:
    m = TOY.edge_index.shape[1]
    given = data(edge_attr=torch.randn(m, 2))
    found, expected = transform(given), rewiring(TOY.x, EDGES)
    assert torch.equal(found.edge_index, expected.edge_index)
    assert ("edge_weight" in found) == (expected.weight is not None)
    if expected.weight is not None:
        assert torch.equal(found.edge_weight, expected.weight)
    assert "edge_attr" not in found
    assert given.edge_attr is not None
    assert repr(rewiring) in repr(transform)


def test_weights_of_the_edges_count() -> None:
    weight = torch.rand(20, 20) + 0.1
    weight = (weight + weight.T)[TOY.edge_index[0], TOY.edge_index[1]]
    edges = Edges.build(TOY.edge_index, num_nodes=20, weight=weight)
    expected = position.PPR(top=None)(edges)
    assert torch.equal(AddPPR(top=None)(data(edge_weight=weight)).pos, expected)
    assert torch.equal(AddPPR(top=None)(data(edge_attr=weight)).pos, expected)
    assert not torch.equal(AddPPR(top=None)(data()).pos, expected)


def test_transforms_compose_with_those_of_pyg() -> None:
    transform = Compose([NormalizeFeatures(), RewireDIGL(4, symmetric=True), AddPPR(top=4), RewireKNN(2)])
    found = transform(data())
    rewired = stencil.Chain(stencil.TopK(4), stencil.Symmetric())(TOY.x, EDGES)
    assert torch.equal(dense(found.pos), dense(position.PPR(top=4)(rewired)))
    assert found.x.sum(1).allclose(torch.ones(20))
    assert found.edge_index.shape[1] >= 40
    assert "AddPPR(PPR(restart=0.05, top=4)" in repr(transform)


def test_positions_of_several_graphs_can_be_batched() -> None:
    batch = Batch.from_data_list([AddReturnProbabilities(3)(data()) for _ in range(2)])
    assert batch.pos.shape == (40, 3)


def test_a_directed_graph_is_refused_where_the_encoding_needs_an_undirected_one() -> None:
    with pytest.raises(ValueError, match="PPR needs an undirected graph"):
        AddPPR()(Data(x=TOY.x, edge_index=TOY.edge_index[:, :3]))


def test_nodes_in_another_order_have_the_same_values_and_edges() -> None:
    path = torch.randperm(30, generator=torch.Generator().manual_seed(0))  # a path whose nodes are numbered at random
    edge_index = torch.stack((torch.cat((path[:-1], path[1:])), torch.cat((path[1:], path[:-1]))))
    data = Data(x=torch.randn(30, 2), edge_index=edge_index, y=torch.arange(30), pos=torch.eye(30).to_sparse())
    ordered = OrderNodes()(data.clone())
    original = ordered.original
    assert sorted(original.tolist()) == list(range(30))
    torch.testing.assert_close(ordered.x, data.x[original])
    torch.testing.assert_close(ordered.y, original)
    torch.testing.assert_close(ordered.pos.to_dense(), torch.eye(30)[original])
    edges = {tuple(pair) for pair in original[ordered.edge_index].T.tolist()}
    assert edges == {tuple(pair) for pair in edge_index.T.tolist()}
    j, i = ordered.edge_index
    assert int((i - j).abs().max()) == 1  # neighbours of a path are numbered one after the other


def test_an_order_needs_an_edge_index() -> None:
    with pytest.raises(ValueError, match=r"OrderNodes needs `data.edge_index`"):
        OrderNodes()(Data(x=torch.zeros(3, 1)))
