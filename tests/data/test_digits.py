"""The digits' graph is the exact neighbourhood graph, made on this machine without files."""

import pytest
import torch

from beltrami.data import CATALOGUE, read_digits


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


def test_edges_join_each_image_to_its_nearest() -> None:
    data, k = read_digits(k=3), 3
    distance = torch.cdist(data.x.double(), data.x.double(), compute_mode="donot_use_mm_for_euclid_dist")
    distance.fill_diagonal_(torch.inf)
    reach = distance.kthvalue(k, dim=1).values + 1e-9
    joined = torch.zeros_like(distance, dtype=torch.bool)
    joined[data.edge_index[0], data.edge_index[1]] = True
    near = distance <= reach[:, None]
    assert bool((joined <= (near | near.T)).all())  # no edge that neither end chose
    assert bool((joined.sum(1) >= k).all())
    strictly = distance < reach[:, None] - 2e-9
    assert bool((strictly <= joined).all())  # ties apart, every choice is an edge


@pytest.mark.parametrize("k", [0, 1797])
def test_digits_refuse_impossible_neighbour_counts(k: int) -> None:
    with pytest.raises(ValueError, match="`k` must be from 1 to 1796"):
        read_digits(k=k)
