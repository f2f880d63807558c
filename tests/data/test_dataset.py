"""A dataset is a canonical undirected graph; anything else is refused."""

from dataclasses import replace
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from beltrami.data import Dataset, Split, make_split, undirected


def tiny(edges: list[tuple[int, int]], *, nodes: int, published: Split | None = None) -> Dataset:
    edge_index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
    x = torch.arange(nodes, dtype=torch.float32)[:, None]
    return Dataset("tiny", x, undirected(edge_index, num_nodes=nodes), torch.arange(nodes) % 2, published)


def pairs(edge_index: Tensor) -> list[tuple[int, int]]:
    return [(int(j), int(i)) for j, i in edge_index.T]


@settings(max_examples=30)
@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2)))))
def test_undirected_is_symmetric_coalesced_sorted_and_free_of_loops(graph: tuple[int, list[tuple[int, int]]]) -> None:
    num_nodes, edges = graph
    edge_index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
    expected = sorted({(a, b) for j, i in edges if j != i for a, b in ((j, i), (i, j))})
    result = undirected(edge_index, num_nodes=num_nodes)
    assert pairs(result) == expected
    assert result.dtype == torch.int64
    assert torch.equal(undirected(result, num_nodes=num_nodes), result)


def test_undirected_refuses_nodes_beyond_the_graph() -> None:
    with pytest.raises(ValueError, match="names node 3"):
        undirected(torch.tensor([[0], [3]]), num_nodes=3)


def test_sizes_are_those_of_the_tensors() -> None:
    data = tiny([(0, 1), (1, 2)], nodes=4)
    assert (data.num_nodes, data.num_edges, data.num_features, data.num_classes) == (4, 2, 1, 2)


def test_largest_component_renumbers_nodes_and_restricts_the_published_split() -> None:
    flags = torch.eye(6, dtype=torch.bool)
    published = Split(flags[2], flags[4], flags[0] | flags[5], "planetoid", 0)
    part = tiny([(0, 1), (2, 4), (4, 5)], nodes=6, published=published).largest_component()
    assert part.x[:, 0].tolist() == [2, 4, 5]
    assert part.y.tolist() == [0, 0, 1]
    assert pairs(part.edge_index) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert part.published is not None
    assert part.published.train.tolist() == [True, False, False]
    assert part.published.val.tolist() == [False, True, False]
    assert part.published.test.tolist() == [False, False, True]


def test_of_equal_components_the_one_with_the_lowest_node_is_chosen() -> None:
    assert tiny([(3, 1), (0, 2)], nodes=4).largest_component().x[:, 0].tolist() == [0, 2]


def test_largest_component_of_connected_and_edgeless_graphs() -> None:
    connected = tiny([(0, 1), (1, 2)], nodes=3)
    assert connected.largest_component() is connected
    assert tiny([], nodes=3).largest_component().x.tolist() == [[0.0]]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_dataset_moves_with_its_split(device: str) -> None:
    flags = torch.eye(3, dtype=torch.bool)
    data = tiny([(0, 1)], nodes=3, published=Split(flags[0], flags[1], flags[2], "planetoid", 0)).to(device)
    split = make_split(data.largest_component(), protocol="planetoid", seed=0)
    assert {t.device.type for t in (data.x, data.edge_index, data.y, split.train, split.val, split.test)} == {device}
    assert split.train.tolist() == [True, False]


@pytest.mark.parametrize(
    "edges",
    [[(0, 1)], [(1, 0), (0, 1)], [(0, 1), (0, 1), (1, 0), (1, 0)], [(0, 0)], [(0, 1), (2, 0)]],
    ids=["one way", "unsorted", "twice", "loop", "other way back"],
)
def test_dataset_refuses_edges_not_in_canonical_form(edges: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="pass it through `undirected"):
        Dataset("bad", torch.zeros(3, 1), torch.tensor(edges).T, torch.zeros(3, dtype=torch.int64))


def test_dataset_refuses_mismatched_features_classes_and_splits() -> None:
    data = tiny([(0, 1)], nodes=3)
    with pytest.raises(ValueError, match="dense float32"):
        replace(data, x=data.x.to_sparse())
    with pytest.raises(ValueError, match="NaN"):
        replace(data, x=data.x / 0)
    with pytest.raises(ValueError, match="one class"):
        replace(data, y=data.y[:2])
    with pytest.raises(ValueError, match="class -1; classes start at 0"):
        replace(data, y=data.y - 1)
    none = torch.zeros(2, dtype=torch.bool)
    with pytest.raises(ValueError, match="splits 2 nodes; the graph has 3"):
        replace(data, published=Split(none, none, none, "planetoid", 0))


def test_dataset_and_split_take_numpy_and_other_types_of_numbers() -> None:
    data: Any = tiny([(0, 1)], nodes=3)
    for x in (data.x.double(), data.x.half(), data.x.numpy(), data.x.numpy().astype("float64")):
        assert torch.equal(replace(data, x=x).x, data.x)
    for y in (data.y.int(), data.y.float(), data.y[:, None], data.y.numpy().astype("uint8")):
        assert torch.equal(replace(data, y=y).y, data.y)
    for edge_index in (data.edge_index.int(), data.edge_index.numpy()):
        assert torch.equal(replace(data, edge_index=edge_index).edge_index, data.edge_index)
    masks: Any = [numpy.arange(3) == k for k in range(3)]
    split = Split(masks[0], masks[1], masks[2], "named", 0)
    assert split.val.tolist() == [False, True, False]


def test_dataset_refuses_one_hot_classes() -> None:
    data = tiny([(0, 1)], nodes=3)
    with pytest.raises(ValueError, match=r"one class per node.*use `y.argmax\(1\)`"):
        replace(data, y=torch.eye(3))
