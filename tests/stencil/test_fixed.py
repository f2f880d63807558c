"""Checks that every stencil must pass, and the stencils that do not depend on the state."""

import math

import pytest
import torch
from checks import GRAPHS, STENCILS, check_stencil, dense, kite, normal, pairs, ragged

from beltrami.diffusivity import RandomWalk
from beltrami.graph import Edges
from beltrami.stencil import KNN, Chain, Complete, Isolated, Keep, Loops, Stencil, Symmetric, TopK, Unweighted


@pytest.mark.parametrize("stencil", STENCILS, ids=repr)
def test_every_stencil_passes_its_checks(stencil: Stencil) -> None:
    for edges in GRAPHS.values():
        check_stencil(stencil, edges)


def test_print_shows_the_settings() -> None:
    assert repr(TopK(64)) == "TopK(k=64, restart=0.05)"
    shown = repr(Chain(KNN(8, on=slice(0, 2)), Loops(0.5)))
    assert shown == ("Chain(KNN(k=8, on=slice(0, 2, None), metric=Euclidean(), approximate=False), Loops(weight=0.5))")


def test_keep_returns_the_same_object() -> None:
    edges = kite()
    assert Keep()(normal(4, 2), edges) is edges


@pytest.mark.parametrize("weight", [1.0, 0.058])
def test_loops_are_the_graph_with_loops(weight: float) -> None:
    edges, z = ragged(weighted=True), normal(6, 2)
    found, wanted = Loops(weight)(z, edges), edges.with_loops(weight)
    assert pairs(found) == pairs(wanted)
    assert found.weight is not None
    assert wanted.weight is not None
    assert torch.equal(found.weight, wanted.weight)


def test_each_node_keeps_its_loops_share() -> None:
    """Rows of the random walk: a node of degree d with a loop of weight w keeps w / (d + w) of itself."""
    edges, weight = kite(), 0.5
    looped = Loops(weight)(normal(4, 2), edges)
    shares = dense(RandomWalk()(normal(4, 2), looped), looped).diagonal()
    torch.testing.assert_close(shares, weight / (edges.in_degree() + weight), check_dtype=False)


def test_a_graph_is_rewired_once_by_equal_stencils_and_again_for_other_settings() -> None:
    first, second, z = kite(), ragged(), normal(6, 2)
    looped = Loops()(z, first)
    assert Loops()(2 * z, first) is looped
    assert Loops(0.5)(z, first) is not looped
    assert Loops()(z, second).num_nodes == 6
    assert TopK(2)(z, first) is TopK(2)(2 * z, first)


def test_symmetric_keeps_the_larger_weight_and_unweighted_none() -> None:
    edges = Edges.build(torch.tensor([[0, 1, 1], [1, 0, 2]]), num_nodes=3, weight=torch.tensor([1.0, 4.0, 2.0]))
    both = Symmetric()(torch.zeros(3, 1), edges)
    assert both.weight is not None
    weights = dict(zip(map(tuple, both.edge_index.T.tolist()), both.weight.tolist(), strict=True))
    assert weights == {(0, 1): 4.0, (1, 0): 4.0, (1, 2): 2.0, (2, 1): 2.0}
    assert Unweighted()(torch.zeros(3, 1), edges).weight is None


def test_complete_and_isolated_graphs() -> None:
    z, edges = normal(5, 2), Edges.build(torch.empty(2, 0, dtype=torch.int64), num_nodes=5)
    complete = Complete()(z, edges)
    assert sorted(pairs(complete)) == [(i, j) for i in range(5) for j in range(5) if i != j]
    assert Isolated()(z, complete).num_edges == 0


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan])
def test_loops_without_a_positive_weight_are_refused(weight: float) -> None:
    with pytest.raises(ValueError, match=r"Loops needs a positive, finite `weight`; got .* use `Keep\(\)`"):
        Loops(weight)
