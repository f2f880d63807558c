"""Drawn block models have the homophily, degree and noise that they state."""

import pytest
import torch

from beltrami.data.block_model import BlockModel
from beltrami.graph import Edges
from beltrami.graph.statistics import homophily


@pytest.mark.parametrize("share", [0.0, 0.25, 0.8, 1.0])
def test_drawn_graph_has_the_homophily_and_degree(share: float) -> None:
    data = BlockModel(1500, share, 8.0, 1.0).draw(0)
    edges = Edges.build(data.edge_index, num_nodes=1500)
    assert homophily(edges, data.y) == pytest.approx(share, abs=0.02)  # four standard errors of 6000 edges
    assert data.edge_index.shape[1] / 1500 == pytest.approx(8.0, abs=0.45)
    assert float(data.y.double().mean()) == pytest.approx(0.5, abs=0.05)


def test_features_are_separated_by_the_distance_and_no_more() -> None:
    model = BlockModel(6000, 0.5, 0.01, 1.6, features=3)
    data = model.draw(1)
    means = torch.stack([data.x[data.y == c].mean(0) for c in (0, 1)])
    assert float((means[1] - means[0]).norm()) == pytest.approx(1.6, abs=0.1)
    assert float((data.x - means[data.y]).std()) == pytest.approx(1.0, abs=0.03)
    right = (model.feature_log_odds(data.x) > 0) == (data.y == 1)
    assert float(right.double().mean()) == pytest.approx(model.best_without_graph, abs=0.02)
    assert model.best_without_graph == pytest.approx(0.788145, abs=1e-6)  # Phi(0.8)


def test_feature_log_odds_are_those_of_two_normal_distributions() -> None:
    model, x = BlockModel(9, 0.5, 1.0, 1.3, features=2), torch.tensor([[0.2, -1.0], [2.0, 0.5]], dtype=torch.float64)
    mean = torch.full((2,), 1.3 / 2 / 2**0.5, dtype=torch.float64)
    expected = ((x + mean).square() - (x - mean).square()).sum(1) / 2
    torch.testing.assert_close(model.feature_log_odds(x), expected)


def test_seed_determines_the_graph() -> None:
    model = BlockModel(60, 0.3, 4.0, 1.0)
    one, same, other = model.draw(3), model.draw(3), model.draw(4)
    assert torch.equal(one.x, same.x)
    assert torch.equal(one.edge_index, same.edge_index)
    assert not torch.equal(one.x, other.x)


def test_impossible_models_are_refused() -> None:
    with pytest.raises(ValueError, match=r"`homophily` from 0 to 1.*got homophily=1.5, distance=1"):
        BlockModel(10, 1.5, 2.0, 1.0)
    with pytest.raises(ValueError, match=r"`distance` of at least 0; got homophily=0.5, distance=-1"):
        BlockModel(10, 0.5, 2.0, -1.0)
    with pytest.raises(ValueError, match="at most half the number of other nodes; got 10 nodes of degree 5"):
        BlockModel(10, 0.5, 5.0, 1.0)
