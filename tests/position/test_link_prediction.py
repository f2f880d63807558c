"""Link prediction: held-out edges do not leak, and the area under the curve is its definition."""

from collections.abc import Callable

import pytest
import torch
from checks import pairs, undirected
from torch import Tensor

from beltrami.graph import Edges
from beltrami.position.deepwalk import held_out, link_auc

RING = undirected([(k, (k + 1) % 20) for k in range(20)], num_nodes=20)


def split(edges: Edges, share: float, seed: int = 0) -> tuple[Edges, Tensor, Tensor]:
    return held_out(edges, share=share, generator=torch.Generator().manual_seed(seed))


def sets(columns: Tensor) -> list[frozenset[int]]:
    return [frozenset(pair) for pair in columns.T.tolist()]


@pytest.mark.parametrize("seed", range(3))
def test_the_training_graph_has_no_held_out_edge_in_either_direction(seed: int) -> None:
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


def test_the_split_depends_on_the_seed() -> None:
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
def test_a_share_outside_zero_and_one_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=f"between 0 and 1; got {share}"):
        split(RING, share)


def test_a_split_without_enough_edges_or_non_edges_is_refused() -> None:
    with pytest.raises(ValueError, match=r"holds out 0 of 20 edges: there must be at least one"):
        split(RING, 0.01)
    triangle = undirected([(0, 1), (1, 2), (2, 0)], num_nodes=3)
    with pytest.raises(ValueError, match=r"holds out 1 of 3 edges: .* as the 0 pairs that are no edges"):
        split(triangle, 0.3)


def by_table(table: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda i, j: table[i, j]


@pytest.mark.parametrize("ties", [False, True])
def test_auc_is_the_share_of_pairs_in_the_right_order(ties: bool) -> None:
    table = torch.rand(9, 9, generator=torch.Generator().manual_seed(0))
    table = (4 * table).round() if ties else table
    positive, negative = torch.randint(9, (2, 7)), torch.randint(9, (2, 11))
    yes, no = table[positive[0], positive[1]].tolist(), table[negative[0], negative[1]].tolist()
    expected = sum((a > b) + 0.5 * (a == b) for a in yes for b in no) / 77
    assert link_auc(by_table(table), positive, negative) == pytest.approx(expected, abs=1e-12)


def test_scores_that_are_not_finite_and_empty_sets_are_refused() -> None:
    some, none = torch.tensor([[0], [1]]), torch.empty(2, 0, dtype=torch.long)
    with pytest.raises(ValueError, match="finite on every pair"):
        link_auc(lambda i, j: torch.full(i.shape, torch.nan), some, some)
    with pytest.raises(ValueError, match="need a pair each; got 1 and 0"):
        link_auc(lambda i, j: i.double(), some, none)
