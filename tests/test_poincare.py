"""The Poincaré ball: closed forms, isometries, limits, and floating point near the boundary."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from beltrami.geometry import Euclidean, PoincareBall

BALLS = [PoincareBall(), PoincareBall(curvature=4.0)]
balls = pytest.mark.parametrize("ball", BALLS, ids=repr)
dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
BOUNDARY = [(torch.float32, 1e-5), (torch.float64, 1e-10)]
boundaries = pytest.mark.parametrize(("dtype", "gap"), BOUNDARY, ids=["float32", "float64"])
seeds = st.integers(0, 2**31)


def directions(seed: int, *, count: int, channels: int = 3) -> Tensor:
    x = torch.randn(count, channels, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.nn.functional.normalize(x, dim=-1)


def points(seed: int, ball: PoincareBall, *, dtype: torch.dtype = torch.float64, count: int = 8) -> Tensor:
    """Return points within nine tenths of the radius."""
    radius = torch.rand(count, 1, generator=torch.Generator().manual_seed(seed + 1), dtype=torch.float64)
    reach = 0.9 / math.sqrt(ball.curvature)
    return (reach * radius * directions(seed, count=count)).to(dtype)


def near(found: Tensor, expected: Tensor, *, atol: float) -> None:
    torch.testing.assert_close(found, expected, atol=atol, rtol=0)


def textbook_add(p: Tensor, q: Tensor, c: float) -> Tensor:
    pq, pp, qq = (p * q).sum(-1, keepdim=True), p.square().sum(-1, keepdim=True), q.square().sum(-1, keepdim=True)
    return ((1 + 2 * c * pq + c * qq) * p + (1 - c * pp) * q) / (1 + 2 * c * pq + c * c * pp * qq)


@balls
@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_formulas_are_those_of_the_textbook(ball: PoincareBall, seed: int) -> None:
    c = ball.curvature
    p, q = points(seed, ball, count=16).split(8)
    w = textbook_add(-p, q, c)
    size = w.norm(dim=-1, keepdim=True)
    factor = 2 / (1 - c * p.square().sum(-1, keepdim=True))
    torch.testing.assert_close(ball.norm(p, q), factor[:, 0] * q.norm(dim=-1))
    torch.testing.assert_close(ball.distance(p, q), 2 / math.sqrt(c) * torch.atanh(math.sqrt(c) * size[:, 0]))
    torch.testing.assert_close(
        ball.log(p, q), 2 / (math.sqrt(c) * factor) * torch.atanh(math.sqrt(c) * size) * w / size
    )
    v, length = 0.2 * q, 0.2 * q.norm(dim=-1, keepdim=True)
    there = torch.tanh(math.sqrt(c) * factor * length / 2) * v / (math.sqrt(c) * length)
    torch.testing.assert_close(ball.exp(p, v), textbook_add(p, there, c))


@balls
@dtypes
@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_mobius_translation_is_an_isometry(ball: PoincareBall, dtype: torch.dtype, seed: int) -> None:
    p, q, by = (0.8 * part for part in points(seed, ball, dtype=dtype, count=24).split(8))
    moved = ball.distance(*(textbook_add(by, x, ball.curvature) for x in (p, q)))
    near(moved, ball.distance(p, q), atol=4000 * torch.finfo(dtype).eps)


@balls
@dtypes
def test_distance_along_a_ray_from_the_origin_adds_up(ball: PoincareBall, dtype: torch.dtype) -> None:
    root, along = math.sqrt(ball.curvature), directions(0, count=1).to(dtype)
    r = torch.tensor([-0.99, -0.5, 0.0, 1e-4, 0.3, 0.99], dtype=torch.float64)
    signed = 2 * torch.atanh(r) / root  # signed distance from the origin
    p = r.to(dtype)[:, None] / root * along
    expected = (signed[:, None] - signed[None, :]).abs().to(dtype)
    torch.testing.assert_close(ball.pairwise(p, p), expected, atol=200 * torch.finfo(dtype).eps, rtol=1e-5)


@balls
def test_maps_at_the_origin_are_the_maps_at_zero(ball: PoincareBall) -> None:
    q, root = points(1, ball), math.sqrt(ball.curvature)
    size = q.norm(dim=-1, keepdim=True)
    torch.testing.assert_close(ball.log_origin(q), torch.atanh(root * size) * q / (root * size))
    torch.testing.assert_close(ball.exp_origin(q), torch.tanh(root * size) * q / (root * size))
    torch.testing.assert_close(ball.exp_origin(ball.log_origin(q)), q)
    torch.testing.assert_close(ball.norm(torch.zeros_like(q), ball.log_origin(q)), ball.distance(q, 0 * q))


@dtypes
def test_small_curvature_is_twice_the_euclidean_metric(dtype: torch.dtype) -> None:
    p, q = points(2, PoincareBall(), dtype=dtype, count=16).split(8)
    flat = Euclidean()
    for c in (1e-2, 1e-4, 1e-6):
        ball, lost = PoincareBall(c), 5 * c + 1e-6
        near(ball.distance(p, q), 2 * flat.distance(p, q), atol=lost)
        near(ball.log(p, q), flat.log(p, q), atol=lost)
        near(ball.exp(p, q), flat.exp(p, q), atol=lost)
        near(ball.riemannian(p, q), q / 4, atol=lost)


def test_curvature_scales_distances() -> None:
    p, q = points(3, PoincareBall(), count=16).split(8)
    shrunk = PoincareBall(9.0).distance(p / 3, q / 3)
    torch.testing.assert_close(shrunk, PoincareBall().distance(p, q) / 3)


@balls
@boundaries
def test_distances_near_the_boundary_are_right(ball: PoincareBall, dtype: torch.dtype, gap: float) -> None:
    outside, size = (1 - gap) * ball.curvature**-0.5, 1 / math.sqrt(ball.curvature)
    p = (outside * directions(4, count=50)).to(dtype)
    q = points(5, ball, dtype=dtype, count=50)
    exact = 2 * size * torch.atanh(torch.tensor(1 - gap, dtype=torch.float64))
    near(ball.distance(p, 0 * p).double(), exact.expand(50), atol=0.01 * size)
    if dtype == torch.float32:
        for other in (q, p.flip(0)):
            exactly = ball.distance(p.double(), other.double())
            near(ball.distance(p, other).double(), exactly, atol=0.02 * size)
    assert torch.equal(ball.distance(p, p), torch.zeros(50, dtype=dtype))
    assert torch.equal(ball.pairwise(p, p).diagonal(), torch.zeros(50, dtype=dtype))


@balls
@boundaries
def test_maps_and_gradients_near_the_boundary_are_finite(ball: PoincareBall, dtype: torch.dtype, gap: float) -> None:
    far = (1 - gap) * ball.curvature**-0.5 * directions(6, count=20)
    p, q = (x.to(dtype).requires_grad_() for x in (far, torch.cat((far[:5], -far[5:10], far[10:].flip(0)))))
    out = {
        "distance": ball.distance(p, q),
        "pairwise": ball.pairwise(p, q),
        "log": ball.log(p, q),
        "exp": ball.exp(p, ball.log(p, q)),
        "far": ball.exp(p, 1e3 * q),
        "project": ball.project(2 * p),
    }
    for name, value in out.items():
        slopes = torch.autograd.grad(value.sum(), (p, q), allow_unused=True, retain_graph=True)
        assert bool(torch.isfinite(value).all()), name
        assert all(bool(torch.isfinite(g).all()) for g in slopes if g is not None), name
    for name in ("exp", "far", "project"):
        assert bool(ball.inside(out[name]).all()), name


@boundaries
def test_round_trips_near_the_boundary_lose_no_more_than_rounding(dtype: torch.dtype, gap: float) -> None:
    # A rounding of p by eps moves it by eps / gap in the metric, and no formula can do better than that.
    ball, lost = PoincareBall(), 20 * torch.finfo(dtype).eps / gap
    p = ((1 - gap) * directions(7, count=20)).to(dtype)
    q = 0.5 * points(8, ball, dtype=dtype, count=20)
    near(ball.exp(p, ball.log(p, q)), q, atol=lost)
    near(ball.exp(q, ball.log(q, p)), p, atol=lost * gap)
    torch.testing.assert_close(ball.norm(p, ball.log(p, q)), ball.distance(p, q))


@balls
@dtypes
def test_projection_moves_only_points_outside(ball: PoincareBall, dtype: torch.dtype) -> None:
    p = points(9, ball, dtype=dtype)
    assert torch.equal(ball.project(p), p)
    assert bool(ball.inside(p).all())
    far = torch.cat(
        (10 * ball.curvature**-0.5 * directions(10, count=4).to(dtype), torch.full((1, 3), 1e15, dtype=dtype))
    )
    back = ball.project(far)
    assert not bool(ball.inside(far).any())
    assert bool(ball.inside(back).all())
    torch.testing.assert_close(ball.project(back), back, atol=0, rtol=4 * torch.finfo(dtype).eps)
    torch.testing.assert_close(back / back.norm(dim=-1, keepdim=True), far / far.norm(dim=-1, keepdim=True))
    assert torch.equal(ball.project(torch.zeros(2, 3, dtype=dtype)), torch.zeros(2, 3, dtype=dtype))


@pytest.mark.parametrize("curvature", [0.0, -1.0, math.inf, math.nan])
def test_curvature_that_is_not_positive_is_refused(curvature: float) -> None:
    with pytest.raises(ValueError, match=f"needs a positive `curvature` c, .*; got {curvature}"):
        PoincareBall(curvature)


def test_balls_of_one_curvature_are_equal() -> None:
    assert PoincareBall() == PoincareBall(1.0)
    assert PoincareBall() != PoincareBall(2.0)
    assert repr(PoincareBall(0.5)) == "PoincareBall(curvature=0.5)"
