"""The digits' graph is the exact neighbourhood graph; the power-law graph has the stated properties."""

import pytest
import torch

from beltrami.data import CATALOGUE, read_digits
from beltrami.data.synthetic import power_law


@pytest.mark.parametrize(("nodes", "edges"), [(2, 0), (50, 300), (1000, 7000)])
def test_graph_has_the_given_number_of_undirected_edges_without_loops(nodes: int, edges: int) -> None:
    data = power_law(nodes, edges, seed=0, classes=2)
    j, i = data.edge_index
    keys, mirrored = (j * nodes + i).sort().values, (i * nodes + j).sort().values
    assert (data.num_nodes, data.num_edges, data.edge_index.shape[1]) == (nodes, edges, 2 * edges)
    assert torch.equal(keys, mirrored)
    assert len(keys.unique()) == len(keys)
    assert not bool((i == j).any())


def test_degrees_follow_a_power_law_of_exponent_five_halves() -> None:
    """By Hill's estimator on the largest two per cent of the degrees."""
    data = power_law(20000, 137740, seed=0)
    degree = torch.bincount(data.edge_index[0], minlength=20000).double().sort(descending=True).values
    tail = degree[:400]
    exponent = 1 + 1 / float((tail[:-1] / tail[-1]).log().mean())
    assert 2.2 < exponent < 2.8
    assert float(degree[0]) > 20 * float(degree.mean())


def test_most_edges_are_within_a_class() -> None:
    """Three of five are drawn within a class, and one in eight of the others falls there."""
    data = power_law(20000, 137740, seed=0)
    within = float((data.y[data.edge_index[0]] == data.y[data.edge_index[1]]).double().mean())
    assert within == pytest.approx(0.6 + 0.4 / 8, abs=0.06)
    assert torch.bincount(data.y).tolist() == [2500] * 8


def test_features_separate_the_classes() -> None:
    data = power_law(4000, 20000, seed=0)
    means = torch.stack([data.x[data.y == c].mean(0) for c in range(8)])
    nearest = torch.cdist(data.x, means).argmin(1)
    assert float((nearest == data.y).double().mean()) > 0.9


def test_seed_determines_the_graph() -> None:
    one, same, other = (power_law(500, 2000, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(one.edge_index, same.edge_index)
    assert torch.equal(one.x, same.x)
    assert torch.equal(one.y, same.y)
    assert not torch.equal(one.edge_index, other.edge_index)


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"at most a quarter of all pairs \(11\); got 10 nodes, 12 edges"):
        power_law(10, 12, seed=0)
    with pytest.raises(ValueError, match="`classes` from 1 to the number of nodes; got features=16, classes=11"):
        power_law(10, 5, seed=0, classes=11)


def test_digits_match_the_catalogue() -> None:
    data, facts = read_digits(), CATALOGUE["digits"]
    assert data.largest_component() is data
    assert (data.num_nodes, data.num_edges, data.num_features, data.num_classes) == (
        facts.nodes,
        facts.edges,
        facts.features,
        facts.classes,
    )
    assert (float(data.x.min()), float(data.x.max())) == (0.0, 1.0)


@pytest.mark.slow
def test_digits_are_joined_to_their_nearest() -> None:
    data, k = read_digits(), 8
    distance = torch.cdist(data.x.double(), data.x.double(), compute_mode="donot_use_mm_for_euclid_dist")
    distance.fill_diagonal_(torch.inf)
    reach = distance.kthvalue(k, dim=1).values + 1e-9
    joined = torch.zeros_like(distance, dtype=torch.bool)
    joined[data.edge_index[0], data.edge_index[1]] = True
    near = distance <= reach[:, None]
    assert bool((joined <= (near | near.T)).all())  # every edge is chosen by one of its ends
    assert bool((joined.sum(1) >= k).all())
    strictly = distance < reach[:, None] - 2e-9
    assert bool((strictly <= joined).all())  # except for ties, every choice is an edge
