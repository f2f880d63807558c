"""Belief propagation gives the exact marginals of trees, and calibrated ones of block models."""

import itertools

import pytest
import torch
from torch import Tensor

from beltrami.data import make_split, undirected
from beltrami.data.block_model import BlockModel
from beltrami.lab.belief_propagation import belief_propagation, best_log_odds

TREE = [(0, 1), (1, 2), (1, 3), (3, 4), (3, 5), (6, 7)]  # with node 8 alone


def by_enumeration(field: Tensor, pairs: list[tuple[int, int]], edge: float, absence: float = 0.0) -> Tensor:
    s = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=len(field))), dtype=torch.float64)
    weight = torch.exp(s @ field / 2)
    for a, b in itertools.combinations(range(len(field)), 2):
        weight = weight * (1 + (edge if (a, b) in pairs else absence) * s[:, a] * s[:, b])
    return (weight @ (s > 0).double() / (weight @ (s < 0).double())).log()


@pytest.mark.parametrize("edge", [-0.9, -0.3, 0.0, 0.6])
def test_marginals_of_a_tree_are_exact(edge: float) -> None:
    field = torch.randn(9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    edge_index = undirected(torch.tensor(TREE).T, num_nodes=9)
    found = belief_propagation(field, edge_index, edge=edge)
    torch.testing.assert_close(found, by_enumeration(field, TREE, edge), rtol=1e-6, atol=1e-7)


def test_few_pairs_without_an_edge_are_counted() -> None:
    """To first order in q the effect of absent edges is exact where the marginals are."""
    field = 0.3 * torch.randn(9, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    none, q = torch.zeros(2, 0, dtype=torch.long), 1e-3
    found = belief_propagation(field, none, edge=0.5, absence=q)
    exact = by_enumeration(field, [], 0.5, q)
    torch.testing.assert_close(found - field, exact - field, rtol=0.02, atol=1e-7)


def test_a_known_label_at_full_coupling_decides_its_component() -> None:
    edge_index = undirected(torch.tensor(TREE).T, num_nodes=9)
    field = torch.zeros(9)
    field[0] = 60
    found = belief_propagation(field, edge_index, edge=-1.0)
    assert found.sign().tolist() == [1, -1, 1, 1, -1, -1, 0, 0, 0]


@pytest.mark.parametrize("share", [0.15, 0.5, 0.8])
def test_confidence_is_the_accuracy_and_the_graph_helps(share: float) -> None:
    model = BlockModel(1500, share, 5.0, 1.5)
    data = model.draw(0)
    split = make_split(data, protocol="shchur", seed=0)
    odds = best_log_odds(model, data, split)[split.test]
    right = ((odds > 0) == (data.y[split.test] == 1)).double().mean()
    assert float(odds.abs().sigmoid().mean()) == pytest.approx(float(right), abs=0.025)
    assert right > model.best_without_graph + (0.05 if share != 0.5 else -0.03)
