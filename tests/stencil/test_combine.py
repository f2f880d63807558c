"""Stencils made from other stencils."""

import pytest
import torch
from checks import normal, pairs

from beltrami.diffusivity import Gaussian
from beltrami.geometry import PoincareBall
from beltrami.graph import Edges
from beltrami.joint import Joint
from beltrami.stencil import KNN, AddEdges, Chain, Charted, KeepStrongest, Loops, Symmetric, TopK, TrainingOnly

N = 12
RING = Edges.build(
    torch.stack((torch.arange(2 * N) % N, (torch.arange(2 * N) + torch.tensor([1, -1]).repeat_interleave(N)) % N)),
    num_nodes=N,
)


def test_a_chain_applies_its_stencils_in_order_and_synchronises_if_one_does() -> None:
    z = normal(N, 5)
    found = Chain(KNN(3), Symmetric(), Loops(2.0))(z, RING)
    nearest = set(pairs(KNN(3)(z, RING)))
    assert set(pairs(found)) == nearest | {(j, i) for i, j in nearest} | {(i, i) for i in range(N)}
    assert Chain(KNN(3), Loops()).synchronises
    assert not Chain(TopK(3), Loops()).synchronises


def test_add_edges_adds_missing_edges_once() -> None:
    z, other = normal(N, 7), Chain(KNN(3), Symmetric())
    expected = dict.fromkeys(pairs(RING), 1.0)
    for pair in pairs(other(z, RING)):
        expected.setdefault(pair, 0.25)
    assert len(expected) > RING.num_edges
    both = AddEdges(other, weight=0.25)(z, RING)
    assert both.num_edges == len(expected)
    assert both.weight is not None
    assert dict(zip(pairs(both), both.weight.tolist(), strict=True)) == expected


def test_edges_are_dropped_in_training_mode_only() -> None:
    z, diffusivity = normal(N, 5), Gaussian(Joint(2, 3), length=0.2).double()
    edges = KNN(6)(z, RING)
    thinned = TrainingOnly(KeepStrongest(0.5, diffusivity), diffusivity)
    kept = set(pairs(thinned(z, edges)))
    assert kept == set(pairs(KeepStrongest(0.5, diffusivity)(z, edges))) < set(pairs(edges))
    diffusivity.eval()
    assert thinned(z, edges) is edges


def test_neighbours_in_the_ball_are_found_from_logarithms_at_the_origin() -> None:
    u, ball = normal(30, 5), PoincareBall()
    none = Edges.build(torch.empty(2, 0, dtype=torch.int64), num_nodes=30)
    charted = Charted(KNN(4, metric=ball), lambda z: ball.exp_origin(z[:, 1:3]))
    size = u[:, 1:3].norm(dim=1, keepdim=True)
    p = torch.tanh(size) * u[:, 1:3] / size
    assert pairs(charted(u, none)) == pairs(KNN(4, metric=ball)(p, none))
    assert pairs(charted(u, none)) != pairs(KNN(4)(u[:, 1:3], none))


def test_added_edges_without_a_positive_weight_are_refused() -> None:
    with pytest.raises(ValueError, match=r"AddEdges needs a positive, finite `weight`; got 0.0"):
        AddEdges(KNN(2), weight=0.0)
