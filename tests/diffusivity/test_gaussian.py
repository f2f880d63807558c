"""The Gaussian diffusivity against a double loop, in flat and in hyperbolic positions."""

import math

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from beltrami.diffusivity import Gaussian
from beltrami.geometry import Euclidean, Metric, PoincareBall
from beltrami.graph import Edges
from beltrami.joint import Joint

JOINT = Joint(2, 3)
EDGES = Edges.build(torch.tensor([[0, 1, 2, 3, 0, 2], [1, 0, 1, 2, 3, 3]]), num_nodes=4)


def state() -> Tensor:
    return torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("metric", [Euclidean(), PoincareBall(), PoincareBall(0.5)], ids=repr)
def test_gaussian_is_the_double_loop(metric: Metric) -> None:
    z, lengths = state(), (0.7, 1.4)
    a = Gaussian(JOINT, metric=metric, heads=2, length=0.7).double()(z, EDGES).detach()
    points = [metric.exp(torch.zeros(2, dtype=torch.float64), z[i, :2]) for i in range(4)]

    def weight(i: int, j: int, length: float) -> float:
        apart = float(metric.distance(points[i], points[j]))
        return math.exp(-(apart**2 + float((z[i, 2:] - z[j, 2:]).square().sum())) / (2 * length**2))

    for e, (j, i) in enumerate(EDGES.edge_index.T.tolist()):
        near = [k for k, receiver in EDGES.edge_index.T.tolist() if receiver == i]
        heads = [weight(i, j, length) / sum(weight(i, k, length) for k in near) for length in lengths]
        assert float(a[e]) == pytest.approx(sum(heads) / 2, rel=1e-6)


@pytest.mark.parametrize("joint", [Joint(2, 3), Joint(5, 0), Joint(0, 5)])
def test_gaussian_sees_the_parts_there_are(joint: Joint) -> None:
    diffusivity = Gaussian(joint, metric=PoincareBall(), heads=3)
    assert sum(p.numel() for p in diffusivity.parameters()) == 3 * ((joint.pos > 0) + (joint.feat > 0))
    z = state().requires_grad_()
    assert gradcheck(lambda z: diffusivity.double()(z, EDGES), (z,))


def test_gaussian_refuses_a_length_of_zero() -> None:
    with pytest.raises(ValueError, match="positive `length`"):
        Gaussian(JOINT, length=0.0)
