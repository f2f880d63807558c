"""Keep and Loops."""

import math

import pytest
import torch
from checks import GRAPHS, STENCILS, check_stencil, dense, kite, normal, pairs, ragged

from beltrami.diffusivity import RandomWalk
from beltrami.graph import Edges
from beltrami.stencil import Keep, Loops, Stencil


@pytest.mark.parametrize("stencil", STENCILS, ids=lambda s: type(s).__name__ + str(getattr(s, "weight", "")))
@pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())
def test_every_stencil_passes_its_battery(stencil: Stencil, edges: Edges) -> None:
    check_stencil(stencil, edges)


def test_keep_gives_the_very_graph() -> None:
    edges = kite()
    assert Keep()(normal(4, 2), edges) is edges


@pytest.mark.parametrize("weight", [1.0, 0.058, 1.714])
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


def test_the_same_graph_is_looped_once_and_another_anew() -> None:
    loops, first, second, z = Loops(), kite(), ragged(), normal(6, 2)
    kept = loops(z, first)
    assert loops(2 * z, first) is kept
    assert loops(z, second).num_nodes == 6
    assert pairs(loops(z, first)) == pairs(kept)


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan])
def test_loops_of_no_weight_are_refused(weight: float) -> None:
    with pytest.raises(ValueError, match=r"Loops needs a positive `weight`; got .* use `Keep\(\)`"):
        Loops(weight)
