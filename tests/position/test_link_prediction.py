"""Quality of positions: splits that leak nothing, and measures against their definitions."""

from collections.abc import Callable

import pytest
import torch
from checks import GRAPHS, pairs, undirected
from torch import Tensor

from beltrami.graph import Edges
from beltrami.position.link_prediction import held_out, link_auc, reconstruction_map

RING = undirected([(k, (k + 1) % 20) for k in range(20)], num_nodes=20)


def split(edges: Edges, share: float, seed: int = 0) -> tuple[Edges, Tensor, Tensor]:
    return held_out(edges, share=share, generator=torch.Generator().manual_seed(seed))


def sets(columns: Tensor) -> list[frozenset[int]]:
    return [frozenset(pair) for pair in columns.T.tolist()]


@pytest.mark.parametrize("seed", range(5))
def test_hidden_edges_are_in_neither_direction_of_the_training_graph(seed: int) -> None:
    training, positive, negative = split(RING, 0.25, seed)
    assert positive.shape == negative.shape == (2, 5)
    assert training.num_nodes == 20
    kept, hidden, others = set(map(frozenset, pairs(training))), set(sets(positive)), set(sets(negative))
    everything = set(map(frozenset, pairs(RING)))
    assert kept | hidden == everything
    assert not kept & hidden
    assert not others & everything
    assert len(hidden) == len(others) == 5
    assert all(len(pair) == 2 for pair in others)


def test_split_follows_its_seed() -> None:
    once, again, other = split(RING, 0.25), split(RING, 0.25), split(RING, 0.25, seed=1)
    assert torch.equal(once[0].edge_index, again[0].edge_index)
    assert all(torch.equal(a, b) for a, b in zip(once[1:], again[1:], strict=True))
    assert not torch.equal(once[1], other[1])
    assert not torch.equal(once[2], other[2])


def test_weights_and_loops_stay_with_their_edges() -> None:
    weight = torch.arange(1.0, 9.0)
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 3, 0, 2], [1, 0, 2, 1, 3, 2, 0, 2]])
    training, positive, _ = split(Edges.build(edge_index, num_nodes=5, weight=weight), 0.4)
    assert positive.shape == (2, 1)
    assert training.num_edges == 6
    assert training.weight is not None
    given = dict(zip(map(tuple, edge_index.T.tolist()), weight.tolist(), strict=True))
    kept = zip(map(tuple, training.edge_index.T.tolist()), training.weight.tolist(), strict=True)
    assert all(given[edge] == value for edge, value in kept)
    assert {(0, 0), (2, 2)} <= set(pairs(training))


def test_an_edge_in_one_direction_is_an_edge() -> None:
    one_way = Edges.build(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    training, positive, negative = split(one_way, 0.5)
    assert training.num_edges == positive.shape[1] == 1
    assert sets(negative) == [frozenset((0, 2))]


def test_non_edges_are_uniform() -> None:
    path = undirected([(0, 1), (1, 2), (2, 3)], num_nodes=4)  # three pairs are left
    drawn = [sets(split(path, 0.3, seed)[2])[0] for seed in range(600)]
    counts = [drawn.count(frozenset(pair)) for pair in ((0, 2), (0, 3), (1, 3))]
    assert sum(counts) == 600
    assert max(abs(count - 200) for count in counts) < 60  # five standard deviations


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 2.0])
def test_shares_that_leave_nothing_are_refused(share: float) -> None:
    with pytest.raises(ValueError, match=f"between 0 and 1; got {share}"):
        split(RING, share)


def test_splits_that_cannot_be_had_are_refused() -> None:
    with pytest.raises(ValueError, match=r"hides 0 of 20 edges: at least one is needed"):
        split(RING, 0.01)
    triangle = undirected([(0, 1), (1, 2), (2, 0)], num_nodes=3)
    with pytest.raises(ValueError, match=r"hides 1 of 3 edges: .* of the 0 pairs that are no edges"):
        split(triangle, 0.3)


def by_table(table: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda i, j: table[i, j]


@pytest.mark.parametrize("ties", [False, True])
def test_auc_is_the_share_of_pairs_in_order(ties: bool) -> None:
    table = torch.rand(9, 9, generator=torch.Generator().manual_seed(0))
    table = (4 * table).round() if ties else table
    positive, negative = torch.randint(9, (2, 7)), torch.randint(9, (2, 11))
    yes, no = table[positive[0], positive[1]].tolist(), table[negative[0], negative[1]].tolist()
    expected = sum((a > b) + 0.5 * (a == b) for a in yes for b in no) / 77
    assert link_auc(by_table(table), positive, negative) == pytest.approx(expected, abs=1e-12)


def test_scores_that_are_no_numbers_and_empty_sets_are_refused() -> None:
    some, none = torch.tensor([[0], [1]]), torch.empty(2, 0, dtype=torch.long)
    with pytest.raises(ValueError, match="finite on every pair"):
        link_auc(lambda i, j: torch.full(i.shape, torch.nan), some, some)
    with pytest.raises(ValueError, match="must hold a pair each; got 1 and 0"):
        link_auc(lambda i, j: i.double(), some, none)


def map_by_loops(table: Tensor, edges: Edges) -> float:
    """Straight from the definition."""
    n, near = edges.num_nodes, set(pairs(edges))
    precisions = []
    for i in range(n):
        mine = [j for j in range(n) if (i, j) in near and i != j]
        if mine:
            each = []
            for j in mine:
                reached = [k for k in range(n) if k != i and table[i, k] >= table[i, j]]
                each.append(sum(k in mine for k in reached) / len(reached))
            precisions.append(sum(each) / len(each))
    return sum(precisions) / len(precisions)


@pytest.mark.parametrize("name", ["kite", "ragged", "weighted"])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("block", [1, 3, 256])
def test_map_is_its_definition(name: str, ties: bool, block: int) -> None:
    edges = GRAPHS[name]
    table = torch.rand(edges.num_nodes, edges.num_nodes, generator=torch.Generator().manual_seed(1))
    table = (3 * table).round() if ties else table
    found = reconstruction_map(by_table(table), edges, block=block)
    assert found == pytest.approx(map_by_loops(table, edges), abs=1e-6)


def test_map_of_the_graph_itself_is_one_and_of_one_point_is_little() -> None:
    adjacency = torch.zeros(20, 20)
    adjacency[RING.i, RING.j] = 1
    assert reconstruction_map(by_table(adjacency), RING) == 1.0
    assert reconstruction_map(by_table(torch.zeros(20, 20)), RING) == pytest.approx(2 / 19)


def test_nothing_to_reconstruct_is_refused() -> None:
    with pytest.raises(ValueError, match="joins no two nodes"):
        reconstruction_map(by_table(torch.zeros(4, 4)), GRAPHS["bare"])
