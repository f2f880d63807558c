"""Every form of a graph gives the same edges; weights and features follow the order of the edges."""

import gc
import warnings

import pytest
import torch
from checks import normal
from torch import Tensor

from beltrami.errors import DirectedGraphWarning
from beltrami.graph import Edges, as_edges, follow_features
from beltrami.graph import edge_values as module
from beltrami.stencil import KNN, Isolated, Loops, Symmetric

EDGE_INDEX = torch.tensor([[3, 0, 2, 2, 1, 0], [0, 1, 1, 2, 3, 3]])  # directed, with a self-loop at 2
WEIGHT = torch.tensor([0.5, 2.0, 3.0, 1.5, 0.7, 4.0])
FEATURES = torch.arange(12.0).reshape(6, 2)


def triples(edges: Edges, values: Tensor) -> set[tuple[int, int, float]]:
    return set(zip(edges.j.tolist(), edges.i.tolist(), values.tolist(), strict=True))


EXPECTED = set(zip(*EDGE_INDEX.tolist(), WEIGHT.tolist(), strict=True))


def adjacency(*, transposed: bool = True) -> Tensor:
    """The dense matrix of the weights with row i and column j, or the other way round."""
    dense = torch.zeros(4, 4)
    j, i = EDGE_INDEX
    dense[(i, j) if transposed else (j, i)] = WEIGHT
    return dense


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_a_sparse_matrix_has_receivers_in_rows_and_weights_as_values(layout: str) -> None:
    with warnings.catch_warnings(action="ignore"):  # torch warns that CSR is in beta
        matrix = getattr(adjacency(), f"to_sparse_{layout}")()
    edges = as_edges(matrix, num_nodes=4)
    assert edges.weight is not None
    assert triples(edges, edges.weight) == EXPECTED
    assert as_edges(matrix, num_nodes=4) is edges


def test_a_sparse_matrix_of_ones_has_no_weights() -> None:
    edges = as_edges((adjacency() > 0).float().to_sparse_coo(), num_nodes=4)
    assert edges.weight is None
    assert triples(edges, torch.ones(6)) == {(j, i, 1.0) for j, i, _ in EXPECTED}


def test_an_adj_t_of_pyg_gives_the_edges_of_its_edge_index() -> None:
    from torch_geometric.data import Data
    from torch_geometric.transforms import ToSparseTensor

    data = Data(edge_index=EDGE_INDEX, edge_weight=WEIGHT, num_nodes=4)
    with warnings.catch_warnings(action="ignore"):
        transposed = ToSparseTensor(attr="edge_weight", layout=torch.sparse_csr)(data).adj_t
    edges = as_edges(transposed, num_nodes=4)
    assert edges.weight is not None
    assert triples(edges, edges.weight) == EXPECTED


def test_an_edge_index_object_of_pyg_shares_the_cache_of_its_tensor() -> None:
    from torch_geometric import EdgeIndex

    given = EdgeIndex(EDGE_INDEX, sparse_size=(4, 4))
    edges = as_edges(given, num_nodes=4)
    assert as_edges(given, num_nodes=4) is edges
    assert type(edges.j) is Tensor
    assert torch.equal(edges.edge_index, Edges.build(EDGE_INDEX, num_nodes=4).edge_index)


def test_weights_and_features_follow_their_edges() -> None:
    edges = as_edges(EDGE_INDEX, num_nodes=4, weight=WEIGHT, features=FEATURES)
    assert edges.weight is not None
    assert edges.features is not None
    assert triples(edges, edges.weight) == EXPECTED
    assert triples(edges, edges.features[:, 1]) == set(zip(*EDGE_INDEX.tolist(), [1.0, 3, 5, 7, 9, 11], strict=True))
    assert torch.equal(edges.to("cpu").features, edges.features)  # type: ignore[arg-type]


def test_the_same_tensors_give_the_same_edges_until_they_change() -> None:
    edge_index, weight, features = EDGE_INDEX.clone(), WEIGHT.clone(), FEATURES.clone()

    def made() -> Edges:
        return as_edges(edge_index, num_nodes=4, weight=weight, features=features)

    first = made()
    assert made() is first
    features.mul_(2)
    second = made()
    assert second is not first
    assert second.features is not None
    assert second.features.max() == 22
    weight.mul_(2)
    third = made()
    assert third.weight is not None
    assert third.weight.max() == 8
    assert third.rows is first.rows  # nothing is sorted again


@pytest.mark.slow
def test_the_caches_keep_nothing_alive() -> None:
    gc.collect()
    caches = module._ATTACHED, module._CONVERTED, module._PLACES
    before = [len(cache) for cache in caches]
    matrix = adjacency().to_sparse_coo()
    features = FEATURES.clone()
    edges = as_edges(matrix, num_nodes=4, features=features)
    follow_features(Loops()(normal(4, 1), edges), edges)
    assert [len(cache) for cache in caches] > before
    del matrix, features, edges
    gc.collect()
    assert [len(cache) for cache in caches] == before


def test_learned_weights_receive_gradients() -> None:
    weight, features = WEIGHT.clone().requires_grad_(), FEATURES.clone().requires_grad_()
    edges = as_edges(EDGE_INDEX, num_nodes=4, weight=weight, features=features)
    assert edges.weight is not None
    assert edges.features is not None
    (edges.weight.sum() + 2 * edges.features.sum()).backward()
    assert torch.equal(weight.grad, torch.ones(6))  # type: ignore[arg-type]
    assert torch.equal(features.grad, torch.full((6, 2), 2.0))  # type: ignore[arg-type]


def looked_up(mesh: Edges, edges: Edges) -> list[list[float]]:
    """The features of the edges of ``mesh``, by a search for each; for graphs without parallel edges."""
    assert edges.features is not None
    known = {(j, i): row for j, i, row in zip(*edges.edge_index.tolist(), edges.features.tolist(), strict=True)}
    return [known.get((j, i), [0.0, 0.0]) for j, i in zip(*mesh.edge_index.tolist(), strict=True)]


@pytest.mark.parametrize("stencil", [Loops(), Symmetric(), KNN(2), Isolated()], ids=repr)
def test_features_follow_a_rewired_graph(stencil: Loops) -> None:
    edges = as_edges(EDGE_INDEX, num_nodes=4, features=FEATURES)
    mesh = stencil(normal(4, 2), edges)
    followed = follow_features(mesh, edges)
    assert followed.features is not None
    assert followed.features.tolist() == looked_up(mesh, edges)
    assert torch.equal(followed.edge_index, mesh.edge_index)


def test_parallel_edges_keep_their_own_features_where_loops_are_added() -> None:
    edge_index = torch.tensor([[0, 0, 1, 0], [1, 1, 0, 1]])
    edges = as_edges(edge_index, num_nodes=2, features=torch.tensor([[1.0], [2.0], [3.0], [4.0]]))
    followed = follow_features(Loops()(normal(2, 1), edges), edges)
    assert followed.features is not None
    assert triples(followed, followed.features[:, 0]) == {
        (0, 0, 0),
        (1, 1, 0),
        (1, 0, 3),
        (0, 1, 1),
        (0, 1, 2),
        (0, 1, 4),
    }


def test_a_directed_graph_is_announced_where_it_is_asked_for() -> None:
    with pytest.warns(DirectedGraphWarning):
        as_edges(EDGE_INDEX.clone(), num_nodes=4, warns=True)
    as_edges(EDGE_INDEX.clone(), num_nodes=4)


@pytest.mark.parametrize(
    ("weight", "features", "message"),
    [
        (torch.ones(4, 3), None, r"`edge_weight` must have one value per edge, \(6,\); got shape \(4, 3\); positions"),
        (torch.ones(5), None, r"`edge_weight` must have one value per edge, \(6,\); got shape \(5,\)\."),
        (torch.ones(6).long(), None, r"`edge_weight` must be floating point"),
        (WEIGHT * 0, None, r"`edge_weight` must be positive"),
        (WEIGHT / 0, None, r"`edge_weight` holds values that are NaN or infinite"),
        (WEIGHT.to("meta"), None, r"`edge_weight` is on meta and the graph on cpu"),
        (None, torch.ones(6), r"`edge_attr` must have one row per edge, \(6, d\); got shape \(6,\)"),
        (None, torch.ones(5, 2), r"`edge_attr` must have one row per edge, \(6, d\); got shape \(5, 2\)"),
        (None, torch.full((6, 1), torch.nan), r"`edge_attr` holds values that are NaN"),
    ],
    ids=lambda value: "" if isinstance(value, str) else None,
)
def test_bad_values_are_refused(weight: Tensor | None, features: Tensor | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_edges(EDGE_INDEX, num_nodes=4, weight=weight, features=features)


def test_bad_sparse_matrices_are_refused() -> None:
    with pytest.raises(ValueError, match=r"sparse `edge_index` must be a matrix \(n, n\); got shape \(4, 3\)"):
        as_edges(adjacency()[:, :3].to_sparse_coo(), num_nodes=4)
    with pytest.raises(ValueError, match="the Tensor has weights of edges already: leave `edge_weight` out"):
        as_edges(adjacency().to_sparse_coo(), num_nodes=4, weight=WEIGHT)
    with pytest.raises(ValueError, match="the Edges has weights of edges already"):
        as_edges(Edges.build(EDGE_INDEX, num_nodes=4, weight=WEIGHT), num_nodes=4, weight=WEIGHT)
