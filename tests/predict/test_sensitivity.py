"""Integrated gradients are complete, and exact at one point where scaling changes no sign."""

import torch
from checks import normal
from torch import Tensor

from beltrami.predict.sensitivity import MOST_POINTS, integrated_gradients


def test_one_point_is_exact_for_relu_and_a_linear_map() -> None:
    w, b, x, calls = normal(5, seed=1), 0.7, normal(5), []

    def score(x: Tensor) -> Tensor:
        calls.append(1)
        return w @ x.relu() + b

    (g,) = integrated_gradients(score, x, rtol=1e-5)
    assert torch.equal(g, w * (x > 0))
    assert len(calls) == 3  # both ends and one point


def test_the_integral_of_a_smooth_score_is_found_to_the_tolerance() -> None:
    x, y = normal(4), normal(3, seed=1)
    parts = integrated_gradients(lambda x, y: x.pow(3).sum() + y.exp().sum() + x.sum() * y.sum(), x, y, rtol=1e-5)
    want_x = x.square() + y.sum() / 2  # the integral of 3 s^2 x^2 + s sum(y)
    want_y = y.expm1() / y + x.sum() / 2
    torch.testing.assert_close(parts[0], want_x, atol=1e-4, rtol=0)
    torch.testing.assert_close(parts[1], want_y, atol=1e-4, rtol=0)
    whole = float(x.pow(3).sum() + y.exp().sum() + x.sum() * y.sum())
    explained = float((parts[0] * x).sum() + (parts[1] * y).sum())
    assert abs(explained - (whole - 3)) <= 1e-5 * max(abs(whole), 3)


def test_the_points_are_doubled_up_to_a_limit() -> None:
    calls = []

    def score(x: Tensor) -> Tensor:
        calls.append(1)
        return (x - 0.1234).relu().sum()  # a kink on the path, at none of the points

    (g,) = integrated_gradients(score, torch.ones(1, dtype=torch.float64), rtol=1e-5)
    assert len(calls) == 2 + 2 * MOST_POINTS - 1
    assert abs(float(g) - 0.8766) < 1 / MOST_POINTS
