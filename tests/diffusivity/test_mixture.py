"""The mixture of Gaussians against a double loop."""

import math

import pytest
import torch
from checks import JOINT, crooked, normal, pairs

from beltrami.diffusivity import Mixture
from beltrami.joint import Joint


def test_mixture_is_the_double_loop() -> None:
    edges, z = crooked(), normal(6, JOINT.channels)
    a = Mixture(JOINT, kernels=2).double()
    with torch.no_grad():
        a.log_sigma.copy_(normal(2, 2, seed=4))
    mu, sigma = a.mu.tolist(), a.log_sigma.exp().tolist()

    def w(i: int, j: int) -> float:
        e = (z[j, :2] - z[i, :2]).tolist()
        return sum(math.exp(-0.5 * sum(((e[c] - mu[k][c]) / sigma[k][c]) ** 2 for c in range(2))) for k in range(2))

    found = a(z, edges)
    for weight, (i, j) in zip(found, pairs(edges), strict=True):
        total = sum(w(i, sender) for receiver, sender in pairs(edges) if receiver == i)
        assert weight.item() == pytest.approx(w(i, j) / total, rel=1e-9)


def test_features_are_not_looked_at() -> None:
    edges, z, a = crooked(), normal(6, JOINT.channels), Mixture(JOINT, kernels=2).double()
    other = JOINT.join(z[:, JOINT.u], normal(6, JOINT.feat, seed=7))
    assert torch.equal(a(z, edges), a(other, edges))


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"`joint` has none: use `RandomWalk`"):
        Mixture(Joint(0, 3), kernels=2)
    with pytest.raises(ValueError, match=r"one of `kernels` or more; got 0"):
        Mixture(JOINT, kernels=0)
