"""Edges: sorted by receiver, with both compressed patterns, restored to the order of the input, and cached."""

import copy
import math
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from checks import GRAPHS, bare, kite, pairs, ragged
from torch import Tensor

from beltrami.graph import Edges, aggregate
from beltrami.graph.edges import Compressed

INDEX = torch.tensor([[2, 0, 1, 0, 2], [0, 1, 0, 1, 2]])  # a double edge 0 -> 1, a loop at 2


def entries(pattern: Compressed) -> list[tuple[int, int, int]]:
    """(row, column, edge) of every entry."""
    bounds = pattern.ptr.tolist()
    rows = [r for r in range(len(bounds) - 1) for _ in range(bounds[r], bounds[r + 1])]
    return list(zip(rows, pattern.index.tolist(), pattern.edge.tolist(), strict=True))


def test_edges_are_sorted_by_receiver_then_sender() -> None:
    edges = Edges.build(INDEX, num_nodes=4)
    assert pairs(edges) == [(0, 1), (0, 2), (1, 0), (1, 0), (2, 2)]
    assert (edges.num_nodes, edges.num_edges) == (4, 5)


def test_the_permutation_gives_the_place_of_each_edge_in_the_input() -> None:
    edges = Edges.build(INDEX, num_nodes=4)
    assert torch.equal(INDEX[:, edges.permutation], edges.edge_index)


@pytest.mark.parametrize("shape", [(5,), (5, 3)])
def test_restore_returns_edge_values_in_the_order_of_the_input(shape: tuple[int, ...]) -> None:
    edges = Edges.build(INDEX, num_nodes=4)
    values = torch.arange(math.prod(shape)).reshape(shape)
    assert torch.equal(edges.restore(values[edges.permutation]), values)
    assert torch.equal(torch.stack((edges.restore(edges.j), edges.restore(edges.i))), INDEX)


@pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())
def test_both_patterns_hold_every_edge_once(edges: Edges) -> None:
    found = [(r, c, e) for e, (r, c) in enumerate(pairs(edges))]
    assert entries(edges.rows) == found
    assert sorted(entries(edges.columns), key=lambda entry: entry[2]) == [(j, i, e) for i, j, e in found]
    assert [r for r, _, _ in entries(edges.columns)] == sorted(j for _, j in pairs(edges))
    assert edges.rows.index.dtype == edges.columns.ptr.dtype == torch.int32


@pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())
def test_degrees_count_the_edges_of_each_node(edges: Edges) -> None:
    nodes = range(edges.num_nodes)
    assert edges.in_degree().tolist() == [sum(i == k for i, _ in pairs(edges)) for k in nodes]
    assert edges.out_degree().tolist() == [sum(j == k for _, j in pairs(edges)) for k in nodes]


def test_weights_are_sorted_with_their_edges() -> None:
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    edges = Edges.build(INDEX, num_nodes=4, weight=weight)
    assert edges.weight is not None
    assert edges.weight.tolist() == [3.0, 1.0, 2.0, 4.0, 5.0]
    assert torch.equal(edges.restore(edges.weight), weight)


def test_with_loops_replaces_loops_by_one_on_every_node() -> None:
    looped = Edges.build(INDEX, num_nodes=4).with_loops(1.0)
    assert pairs(looped) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 0), (1, 1), (2, 2), (3, 3)]
    assert looped.weight is None


def test_loops_get_their_weight_and_the_other_edges_keep_theirs() -> None:
    looped = Edges.build(INDEX, num_nodes=4).with_loops(0.25)
    assert looped.weight is not None
    assert looped.weight.tolist() == [0.25 if i == j else 1.0 for i, j in pairs(looped)]

    weighted = ragged(weighted=True)
    assert weighted.weight is not None
    again = weighted.with_loops(1.0)
    assert again.weight is not None
    assert again.weight.dtype == torch.float64
    off = again.i != again.j
    assert again.weight[off].tolist() == weighted.weight[weighted.i != weighted.j].tolist()
    assert again.weight[~off].tolist() == [1.0] * 6


def test_adding_loops_twice_is_adding_them_once() -> None:
    once = kite().with_loops(0.5)
    twice = once.with_loops(0.5)
    assert torch.equal(once.edge_index, twice.edge_index)
    assert once.weight is not None
    assert twice.weight is not None
    assert torch.equal(once.weight, twice.weight)


def test_a_graph_without_edges_gets_only_loops() -> None:
    assert pairs(bare().with_loops(2.0)) == [(k, k) for k in range(4)]


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan])
def test_loops_without_positive_weight_are_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="a self-loop needs a positive `weight`"):
        kite().with_loops(weight)


def test_to_moves_every_tensor_and_returns_itself_on_the_same_device() -> None:
    edges = ragged(weighted=True)
    assert edges.to("cpu") is edges
    moved = edges.to("meta")
    assert moved.weight is not None
    tensors = [moved.j, moved.i, moved.weight, moved.permutation]
    for pattern in (moved.rows, moved.columns):
        tensors += [pattern.ptr, pattern.index, pattern.edge]
    assert {t.device.type for t in tensors} == {"meta"}
    assert (moved.num_nodes, moved.num_edges) == (6, 9)


def test_32_bit_indices_give_the_same_edges_as_64_bit() -> None:
    assert torch.equal(Edges.build(INDEX.int(), num_nodes=4).edge_index, Edges.build(INDEX, num_nodes=4).edge_index)


def test_the_input_is_not_changed() -> None:
    before = INDEX.clone()
    Edges.build(INDEX, num_nodes=4).with_loops(1.0)
    assert torch.equal(INDEX, before)


def test_repr_names_nodes_and_edges() -> None:
    assert repr(kite()) == "Edges(4 nodes, 8 edges)"
    assert repr(ragged(weighted=True)) == "Edges(6 nodes, 9 edges, weighted)"


@pytest.mark.parametrize(
    ("edge_index", "num_nodes", "message"),
    [
        (INDEX, 2, "names node 2"),
        (INDEX - 1, 4, "names node -1"),
        (INDEX.T, 4, r"shape \(2, m\); got \(5, 2\)"),
        (INDEX.float(), 4, "must hold integers"),
        (INDEX[:, :0], 0, "the graph is empty"),
    ],
)
def test_invalid_graphs_are_refused(edge_index: Tensor, num_nodes: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Edges.build(edge_index, num_nodes=num_nodes)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (torch.ones(4), r"one value per edge, \(5,\); got \(4,\)"),
        (torch.ones(5, 1), r"one value per edge, \(5,\); got \(5, 1\)"),
        (torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0]), "positive and finite"),
        (torch.tensor([1.0, 1.0, -2.0, 1.0, 1.0]), "positive and finite"),
        (torch.tensor([1.0, 1.0, math.nan, 1.0, 1.0]), "positive and finite"),
        (torch.tensor([1.0, 1.0, math.inf, 1.0, 1.0]), "positive and finite"),
        (torch.ones(5, dtype=torch.long), r"floating point; got torch.int64. Try `weight.float\(\)`"),
    ],
)
def test_invalid_weights_are_refused(weight: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Edges.build(INDEX, num_nodes=4, weight=weight)


def test_the_cache_returns_the_same_edges_for_the_same_tensor() -> None:
    one, other = INDEX.clone(), INDEX.clone()
    edges = Edges.cached(one, num_nodes=4)
    assert torch.equal(edges.edge_index, Edges.build(INDEX, num_nodes=4).edge_index)
    others = Edges.cached(other, num_nodes=4)
    assert Edges.cached(one, num_nodes=4) is edges
    assert Edges.cached(other, num_nodes=4) is others
    assert others is not edges
    assert Edges.cached(copy.deepcopy(one), num_nodes=4) is not edges


def test_the_cache_builds_new_edges_after_an_in_place_change_and_for_another_number_of_nodes() -> None:
    edge_index = INDEX.clone()
    edges = Edges.cached(edge_index, num_nodes=4)
    assert Edges.cached(edge_index, num_nodes=5).num_nodes == 5
    assert Edges.cached(edge_index, num_nodes=4) is edges
    edge_index[0, 0] = 3
    changed = Edges.cached(edge_index, num_nodes=4)
    assert pairs(changed)[1] == (0, 3)
    assert Edges.cached(edge_index, num_nodes=4) is changed


def test_the_cache_frees_edges_when_the_tensor_is_gone() -> None:
    edge_index = INDEX.clone()
    edges = weakref.ref(Edges.cached(edge_index, num_nodes=4))
    assert edges() is not None
    del edge_index
    assert edges() is None


def test_the_cache_refuses_invalid_graphs_every_time() -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="names node 2"):
            Edges.cached(INDEX, num_nodes=2)


def test_the_cache_gives_all_threads_the_same_edges() -> None:
    edge_index = INDEX.clone()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: Edges.cached(edge_index, num_nodes=4), range(16)))
    assert all(edges is found[0] for edges in found)


def test_edges_cached_in_inference_mode_are_not_used_for_training() -> None:
    edge_index = INDEX.clone()
    with torch.inference_mode():
        inferred = Edges.cached(edge_index, num_nodes=4)
        assert Edges.cached(edge_index, num_nodes=4) is inferred
        assert Edges.cached(INDEX.clone(), num_nodes=4).num_edges == 5  # such a tensor has no version
    assert not Edges.cached(edge_index, num_nodes=4).j.is_inference()


def test_edges_built_inside_a_torch_func_transform_are_not_cached() -> None:
    edge_index, inside = INDEX.clone(), []

    def loss(z: Tensor) -> Tensor:
        inside.append(Edges.cached(edge_index, num_nodes=4))
        return aggregate(torch.ones(5), z, inside[-1]).square().sum()

    z = torch.arange(8.0).reshape(4, 2)
    slope = torch.func.grad(loss)(z)
    edges = Edges.cached(edge_index, num_nodes=4)
    assert edges is not inside[0]
    torch.testing.assert_close(torch.func.grad(loss)(z), slope)
    assert inside[-1] is edges
    batch = torch.func.vmap(torch.func.grad(loss))(torch.stack((z, 2 * z)))
    torch.testing.assert_close(batch, torch.stack((slope, 2 * slope)))
