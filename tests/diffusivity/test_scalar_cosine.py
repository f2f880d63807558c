"""The angle's diffusivity against a double loop, and its limit of uniform weights."""

import math

import pytest
import torch
from checks import crooked, normal
from torch.autograd import gradcheck

from beltrami.diffusivity import ScalarCosine
from beltrami.graph import attend


@pytest.mark.parametrize("heads", [1, 2])
def test_angle_is_the_double_loop(heads: int) -> None:
    edges = crooked()
    z = normal(edges.num_nodes, 4)
    a = ScalarCosine(heads=heads, sharpness=0.8).double()(z, edges).detach()

    def weight(i: int, j: int, sharpness: float) -> float:
        lengths = float(z[i].norm() * z[j].norm())
        return math.exp(sharpness * float(z[i] @ z[j]) / lengths)

    for e, (j, i) in enumerate(edges.edge_index.T.tolist()):
        near = [k for k, receiver in edges.edge_index.T.tolist() if receiver == i]
        by_head = [0.8 * 2**h for h in range(heads)]
        expected = [weight(i, j, s) / sum(weight(i, k, s) for k in near) for s in by_head]
        assert float(a[e]) == pytest.approx(sum(expected) / heads, rel=1e-6)


def test_no_sharpness_is_uniform_and_there_is_a_number_a_head_to_learn() -> None:
    edges = crooked()
    angle = ScalarCosine(heads=3, sharpness=0.0).double()
    assert angle.spread(normal(edges.num_nodes, 4), edges) < 1e-12
    assert sum(p.numel() for p in angle.parameters()) == 3


def test_its_pair_is_its_score() -> None:
    edges = crooked()
    z, angle = normal(edges.num_nodes, 4), ScalarCosine(heads=2, sharpness=1.7).double()
    pair = angle.pair(z)
    torch.testing.assert_close(pair.score(edges), angle.score(z, edges))
    assert gradcheck(lambda z: angle(z, edges), (z.requires_grad_(),))
    assert attend(pair, z, edges, normalise=angle.normalise).shape == z.shape


def test_angle_refuses_no_heads() -> None:
    with pytest.raises(ValueError, match="`heads` at least 1; got 0"):
        ScalarCosine(heads=0)
