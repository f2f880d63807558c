"""Properties of every metric, and of the Euclidean one."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

from beltrami.geometry import Euclidean, Metric, PoincareBall, scale_for_squares

METRICS: list[Metric] = [Euclidean(), PoincareBall(), PoincareBall(curvature=4.0)]
DTYPES = [torch.float32, torch.float64]
metrics = pytest.mark.parametrize("metric", METRICS, ids=repr)
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)
seeds = st.integers(0, 2**31)


def points(seed: int, *, dtype: torch.dtype, metric: Metric, count: int = 12, channels: int = 3) -> Tensor:
    """Return points within nine tenths of the radius of the ball, or of the unit ball in Euclidean space."""
    generator = torch.Generator().manual_seed(seed)
    direction = torch.randn(count, channels, generator=generator, dtype=torch.float64)
    radius = 0.9 * torch.rand(count, 1, generator=generator, dtype=torch.float64)
    size = 1 / math.sqrt(metric.curvature) if isinstance(metric, PoincareBall) else 1.0
    return (size * radius * torch.nn.functional.normalize(direction, dim=-1)).to(dtype)


def tolerance(dtype: torch.dtype) -> float:
    """For quantities of order one to ten; the boundary magnifies rounding by 1 / (1 - 0.9^2), squared."""
    return 500 * torch.finfo(dtype).eps


def near(found: Tensor, expected: Tensor, *, atol: float) -> None:
    torch.testing.assert_close(found, expected, atol=atol, rtol=0)


@metrics
@dtypes
@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_distance_is_a_metric(metric: Metric, dtype: torch.dtype, seed: int) -> None:
    p, q, r = points(seed, dtype=dtype, metric=metric, count=36).split(12)
    apart = metric.distance(p, q)
    assert apart.dtype == dtype
    assert bool((apart > 0).all())
    assert torch.equal(apart, metric.distance(q, p))
    assert torch.equal(metric.distance(p, p), torch.zeros(12, dtype=dtype))
    assert bool((apart <= metric.distance(p, r) + metric.distance(r, q) + tolerance(dtype)).all())


@metrics
@dtypes
@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_logarithm_inverts_the_exponential(metric: Metric, dtype: torch.dtype, seed: int) -> None:
    p, q = points(seed, dtype=dtype, metric=metric, count=24).split(12)
    v = metric.log(p, q)
    near(metric.exp(p, v), q, atol=tolerance(dtype))
    near(metric.log(p, metric.exp(p, 0.3 * v)), 0.3 * v, atol=tolerance(dtype))
    torch.testing.assert_close(metric.norm(p, v), metric.distance(p, q), atol=tolerance(dtype), rtol=1e-6)


@metrics
@dtypes
@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_geodesics_have_constant_speed(metric: Metric, dtype: torch.dtype, seed: int) -> None:
    p, q = points(seed, dtype=dtype, metric=metric, count=24).split(12)
    part = metric.exp(p, 0.25 * metric.log(p, q))
    near(metric.distance(p, part), 0.25 * metric.distance(p, q), atol=tolerance(dtype))
    near(metric.distance(part, q), 0.75 * metric.distance(p, q), atol=tolerance(dtype))


@metrics
@dtypes
def test_pairwise_is_distance_of_all_pairs(metric: Metric, dtype: torch.dtype) -> None:
    p, q = points(0, dtype=dtype, metric=metric, count=40), points(1, dtype=dtype, metric=metric, count=30) * 0.5
    expected = metric.distance(p[:, None], q[None, :])
    torch.testing.assert_close(metric.pairwise(p, q), expected, atol=tolerance(dtype), rtol=0)


@metrics
def test_leading_dimensions_broadcast(metric: Metric) -> None:
    p, q = points(2, dtype=torch.float64, metric=metric, count=18).split((12, 6))
    p, q = p.view(2, 6, 3), q
    assert metric.distance(p, q).shape == (2, 6)
    for both in (metric.exp, metric.log):
        assert both(p, 0.1 * q).shape == (2, 6, 3)
        torch.testing.assert_close(both(p, 0.1 * q)[1], both(p[1], 0.1 * q))
    assert metric.norm(p[:1, :1], q).shape == (1, 6)
    assert metric.norm(p, q[:1]).shape == (2, 6)
    assert metric.inside(p).shape == (2, 6)


@metrics
def test_derivatives_match_finite_differences(metric: Metric) -> None:
    p, q = (part.clone().requires_grad_() for part in points(3, dtype=torch.float64, metric=metric, count=8).split(4))
    assert gradcheck(metric.distance, (p, q))
    assert gradcheck(metric.pairwise, (p, q))
    assert gradcheck(metric.log, (p, q))
    assert gradcheck(metric.exp, (p, q))
    assert gradcheck(metric.norm, (p, q))


@metrics
@dtypes
def test_gradients_are_finite_where_points_coincide(metric: Metric, dtype: torch.dtype) -> None:
    p = points(4, dtype=dtype, metric=metric, count=4)
    p[0] = 0
    q = p.clone().requires_grad_()
    p.requires_grad_()
    apart = metric.distance(p, q)
    assert all(torch.equal(g, torch.zeros_like(g)) for g in torch.autograd.grad(apart.sum(), (p, q)))
    value = metric.pairwise(p, q).sum() + metric.exp(p, metric.log(p, q)).sum() + metric.exp(p, 0 * q).sum()
    assert all(bool(torch.isfinite(g).all()) for g in torch.autograd.grad(value, (p, q)))


@metrics
def test_logarithm_and_exponential_are_smooth_where_points_coincide(metric: Metric) -> None:
    p = points(5, dtype=torch.float64, metric=metric, count=3).requires_grad_()
    zero = torch.zeros_like(p).requires_grad_()
    assert gradcheck(lambda p, v: metric.exp(p, v), (p, zero))
    assert gradcheck(lambda p, q: metric.log(p, q), (p, p.detach().clone().requires_grad_()))


@metrics
def test_riemannian_gradient_of_distance_is_the_unit_vector_away(metric: Metric) -> None:
    p, q = points(6, dtype=torch.float64, metric=metric, count=12).split(6)
    p.requires_grad_()
    (slope,) = torch.autograd.grad(metric.distance(p, q).sum(), p)
    p = p.detach()
    away = -metric.log(p, q) / metric.distance(p, q)[:, None]
    torch.testing.assert_close(metric.riemannian(p, slope), away)
    torch.testing.assert_close(metric.norm(p, metric.riemannian(p, slope)), torch.ones(6, dtype=torch.float64))


@metrics
@pytest.mark.parametrize("name", ["distance", "pairwise", "exp", "log", "norm", "riemannian"])
def test_points_of_different_widths_are_refused(metric: Metric, name: str) -> None:
    with pytest.raises(ValueError, match="the same number of channels; got 1 and 3"):
        getattr(metric, name)(torch.zeros(4, 1), torch.zeros(4, 3))


def test_euclidean_maps_are_sums_and_differences() -> None:
    p, q = torch.tensor([[1.0, 2.0]]), torch.tensor([[4.0, 6.0]])
    flat = Euclidean()
    assert float(flat.distance(p, q)) == 5.0
    assert torch.equal(flat.log(p, q), q - p)
    assert torch.equal(flat.exp(p, q), p + q)
    assert torch.equal(flat.project(100 * p), 100 * p)
    assert torch.equal(flat.riemannian(p, q), q)
    assert flat.inside(torch.tensor([[1e9, 0.0], [torch.inf, 0.0]])).tolist() == [True, False]


def test_euclidean_pairwise_is_accurate_far_from_the_origin() -> None:
    p = points(8, dtype=torch.float32, metric=Euclidean(), count=40)
    apart = Euclidean().pairwise(p, p[:30].flip(0) + 1e-3)
    far = Euclidean().pairwise(p + 1024, p[:30].flip(0) + 1e-3 + 1024)
    torch.testing.assert_close(far, apart, atol=2e-3, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_only_extreme_values_are_scaled_and_by_powers_of_two(dtype: torch.dtype) -> None:
    limits = torch.finfo(dtype)
    for ordinary in (1.0, 1e-9, 1e9, 0.0, math.inf, math.nan):
        assert scale_for_squares(torch.tensor([ordinary, 0.0], dtype=dtype)) == 1.0
    for extreme in (limits.max, limits.max / 1e3, limits.tiny, limits.smallest_normal / 2**10):
        scale = scale_for_squares(torch.tensor([extreme, 0.0], dtype=dtype))
        assert math.frexp(scale)[0] == 0.5
        assert limits.tiny**0.25 < extreme * scale <= 4.0
    assert scale_for_squares(torch.empty(0, 3)) == 1.0


def test_points_of_ordinary_size_are_not_copied() -> None:
    p = torch.randn(3, 2).clamp(-0.4, 0.4)
    for metric in (Euclidean(), PoincareBall()):
        assert metric.rescaled(p)[0] is p
        assert metric.rescaled(p)[1:] == (metric, 1.0)
