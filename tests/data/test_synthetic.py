"""The power-law graph has what its docstring promises."""

import pytest
import torch

from beltrami.data.synthetic import power_law


@pytest.mark.parametrize(("nodes", "edges"), [(2, 0), (50, 300), (1000, 7000), (20000, 137740)])
def test_edges_are_exactly_as_many_and_undirected_without_loops(nodes: int, edges: int) -> None:
    data = power_law(nodes, edges, seed=0, classes=2)
    j, i = data.edge_index
    keys, mirrored = (j * nodes + i).sort().values, (i * nodes + j).sort().values
    assert (data.num_nodes, data.num_edges, data.edge_index.shape[1]) == (nodes, edges, 2 * edges)
    assert torch.equal(keys, mirrored)
    assert len(keys.unique()) == len(keys)
    assert not bool((i == j).any())


def test_degrees_fall_as_a_power_of_five_halves() -> None:
    """Hill's estimate of the exponent from the largest two in a hundred degrees."""
    data = power_law(20000, 137740, seed=0)
    degree = torch.bincount(data.edge_index[0], minlength=20000).double().sort(descending=True).values
    tail = degree[:400]
    exponent = 1 + 1 / float((tail[:-1] / tail[-1]).log().mean())
    assert 2.2 < exponent < 2.8
    assert float(degree[0]) > 20 * float(degree.mean())


def test_edges_prefer_their_class() -> None:
    """Three of five are drawn within a class, and of the others one in eight falls there."""
    data = power_law(20000, 137740, seed=0)
    within = float((data.y[data.edge_index[0]] == data.y[data.edge_index[1]]).double().mean())
    assert within == pytest.approx(0.6 + 0.4 / 8, abs=0.06)
    assert torch.bincount(data.y).tolist() == [2500] * 8


def test_features_tell_the_classes_apart() -> None:
    data = power_law(4000, 20000, seed=0)
    means = torch.stack([data.x[data.y == c].mean(0) for c in range(8)])
    nearest = torch.cdist(data.x, means).argmin(1)
    assert float((nearest == data.y).double().mean()) > 0.9


def test_the_seed_decides() -> None:
    one, same, other = (power_law(500, 2000, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(one.edge_index, same.edge_index)
    assert torch.equal(one.x, same.x)
    assert torch.equal(one.y, same.y)
    assert not torch.equal(one.edge_index, other.edge_index)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match=r"at most a quarter of all pairs \(11\); got 10 nodes, 12 edges"):
        power_law(10, 12, seed=0)
    with pytest.raises(ValueError, match="`classes` from 1 to the number of nodes; got features=16, classes=11"):
        power_law(10, 5, seed=0, classes=11)
