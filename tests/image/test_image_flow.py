"""Image flows: discretisation, invariants and limits; the bilateral filter against eq. (6)."""

import math
from itertools import pairwise

import numpy as np
import pytest
import scipy.ndimage
import torch
from torch import Tensor

from beltrami.diffusivity import Gaussian
from beltrami.flow import LinearFlow
from beltrami.image import (
    Divergence,
    ImageFlow,
    InverseMetric,
    LaplaceBeltrami,
    PixelGraph,
    Projected,
    Surface,
    bilateral,
)
from beltrami.image.image_flow import PixelDiffusion
from beltrami.scheme import ConstantSteps, Euler, Scheme, solve

FLOWS: list[type[ImageFlow]] = [LaplaceBeltrami, Projected, Divergence, InverseMetric]


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def make(kind: type[ImageFlow], alpha: float, patch: int = 1) -> ImageFlow:
    return kind(Surface(alpha, patch))


def matrix(field: PixelDiffusion, h: int, w: int) -> Tensor:
    """Return the operator as a dense matrix, column by column."""
    columns = [field(0.0, unit.view(1, h, w)).flatten() for unit in torch.eye(h * w, dtype=torch.float64)]
    return torch.stack(columns, dim=1)


def by_hand(kind: type[ImageFlow], x: Tensor, surface: Surface) -> np.ndarray:
    """Return dx/dt of a one-channel image, from the weights to the eight neighbours of each pixel."""
    g = surface.pullback(x)
    g11, g12, g22 = (entry.numpy() for entry in g)
    image = x[0].numpy()
    h, w = image.shape
    slope = np.zeros((h, w))

    def tensor(i: int, j: int) -> np.ndarray:
        metric = np.array([[g11[i, j], g12[i, j]], [g12[i, j], g22[i, j]]])
        area = math.sqrt(np.linalg.det(metric))
        return {
            LaplaceBeltrami: area * np.linalg.inv(metric),
            InverseMetric: np.linalg.inv(metric),
            Projected: np.eye(2) / area,
            Divergence: np.eye(2) / area,
        }[kind]

    def weight(i: int, j: int, down: int, right: int) -> float:
        d = tensor(i, j)
        if down and right:
            return max(0.0, float(d[0, 1]) * down * right)
        return max(0.0, float(d[0, 0] if down else d[1, 1]) - abs(float(d[0, 1])))

    for i in range(h):
        for j in range(w):
            area = math.sqrt(g11[i, j] * g22[i, j] - g12[i, j] ** 2)
            for down in (-1, 0, 1):
                for right in (-1, 0, 1):
                    a, b = i + down, j + right
                    if (down or right) and 0 <= a < h and 0 <= b < w:
                        one, other = weight(i, j, down, right), weight(a, b, down, right)
                        if one and other:  # their harmonic mean
                            slope[i, j] += 2 / (1 / one + 1 / other) * (image[a, b] - image[i, j])
            if kind in (LaplaceBeltrami, Projected):
                slope[i, j] /= area
    return slope


@pytest.mark.parametrize("kind", FLOWS)
@pytest.mark.parametrize("patch", [1, 3])
def test_flow_is_the_discretisation_by_hand(kind: type[ImageFlow], patch: int) -> None:
    x = noise(1, 6, 5)
    found = make(kind, 4.0, patch)(0.0, x)[0].numpy()
    np.testing.assert_allclose(found, by_hand(kind, x, Surface(4.0, patch)), atol=1e-13)


def smooth(h: int) -> tuple[Tensor, Tensor]:
    """Return a smooth grey image of h x h pixels on the unit square, increasing to the lower right, and eq. (3) in
    closed form at alpha = 0.6. (Where the mixed term changes sign, weights have a kink and the order is one.)"""
    alpha, at = 0.6, (torch.arange(h, dtype=torch.float64) + 0.5) / h
    p, q = torch.meshgrid(at, at, indexing="ij")
    e, s, c = 0.8 * torch.exp(p / 2 + q / 3), 0.3 * torch.sin(p + q), 0.3 * torch.cos(p + q)
    x, x1, x2 = e + s, e / 2 + c, e / 3 + c
    x11, x12, x22 = e / 4 - s, e / 6 - s, e / 9 - s
    det = 1 + alpha**2 * (x1**2 + x2**2)
    bend = (1 + alpha**2 * x2**2) * x11 - 2 * alpha**2 * x1 * x2 * x12 + (1 + alpha**2 * x1**2) * x22
    return x[None], bend / det**2


@pytest.mark.parametrize("kind", [LaplaceBeltrami, Projected])
def test_grey_flows_converge_to_eq_3_at_second_order(kind: type[ImageFlow]) -> None:
    errors = []
    for h in (16, 32, 64):
        x, expected = smooth(h)
        # Pixels are one unit apart, so that heights scale with h as widths do: x -> h x, f -> f / h.
        found = make(kind, 0.6)(0.0, h * x)[0] * h
        inside = slice(h // 8, -h // 8)
        errors.append(float((found - expected)[inside, inside].abs().max()))
    assert errors[-1] < 1e-3
    for coarse, fine in pairwise(errors):
        assert math.log2(coarse / fine) == pytest.approx(2.0, abs=0.25)


@pytest.mark.parametrize("kind", FLOWS)
def test_plane_at_alpha_zero_is_the_five_point_laplacian(kind: type[ImageFlow]) -> None:
    x = noise(2, 5, 6)
    wide = torch.nn.functional.pad(x[None], (1, 1, 1, 1), mode="replicate")[0]
    laplacian = wide[:, 2:, 1:-1] + wide[:, :-2, 1:-1] + wide[:, 1:-1, 2:] + wide[:, 1:-1, :-2] - 4 * x
    torch.testing.assert_close(make(kind, 0.0, 3)(0.0, x), laplacian)


@pytest.mark.parametrize("kind", FLOWS)
def test_constant_image_is_unmoved(kind: type[ImageFlow]) -> None:
    x = torch.full((3, 5, 4), 0.7)
    assert not make(kind, 9.0, 3)(0.0, x).any()
    torch.testing.assert_close(bilateral(x, time=2.0, alpha=5.0), x)


@pytest.mark.parametrize("kind", FLOWS)
def test_rotation_and_reflection_commute_with_the_flow(kind: type[ImageFlow]) -> None:
    flow, x = make(kind, 5.0, 3), noise(3, 6, 8)
    torch.testing.assert_close(flow(0.0, x.rot90(1, (1, 2))), flow(0.0, x).rot90(1, (1, 2)))
    torch.testing.assert_close(flow(0.0, x.flip(2)), flow(0.0, x).flip(2))


@pytest.mark.parametrize("kind", FLOWS)
def test_permuting_channels_commutes_with_the_flow(kind: type[ImageFlow]) -> None:
    flow, x, order = make(kind, 5.0), noise(3, 6, 8), torch.tensor([2, 0, 1])
    torch.testing.assert_close(flow(0.0, x[order]), flow(0.0, x)[order])


@pytest.mark.parametrize("kind", [Divergence, InverseMetric])
def test_divergence_forms_conserve_the_mean(kind: type[ImageFlow]) -> None:
    slope = make(kind, 5.0, 3)(0.0, noise(3, 7, 6))
    assert slope.abs().max() > 0.01
    torch.testing.assert_close(slope.sum((1, 2)), torch.zeros(3, dtype=torch.float64), atol=1e-13, rtol=0)


@pytest.mark.parametrize("kind", [LaplaceBeltrami, Projected])
def test_beltrami_flow_conserves_the_mean_over_the_surface_only(kind: type[ImageFlow]) -> None:
    x = noise(3, 7, 6)
    flow = make(kind, 5.0, 3)
    slope, area = flow(0.0, x), flow.surface.pullback(x).det.sqrt()
    torch.testing.assert_close((area * slope).sum((1, 2)), torch.zeros(3, dtype=torch.float64), atol=1e-12, rtol=0)
    assert slope.sum((1, 2)).abs().max() > 1e-4


@pytest.mark.parametrize("kind", FLOWS)
@pytest.mark.parametrize("alpha", [1.0, 50.0])
def test_operator_has_nonnegative_weights_and_bounded_spectrum(kind: type[ImageFlow], alpha: float) -> None:
    field = make(kind, alpha).freeze(noise(1, 5, 6))
    dense = matrix(field, 5, 6)
    assert (dense - torch.diag(dense.diagonal())).min() >= 0.0
    torch.testing.assert_close(dense.sum(1), torch.zeros(30, dtype=torch.float64), atol=1e-13, rtol=0)
    assert float(-dense.diagonal().min()) == pytest.approx(field.rate)
    symmetric = field.mass.flatten()[:, None] * dense
    torch.testing.assert_close(symmetric, symmetric.T)
    spectrum = torch.linalg.eigvals(dense).real
    assert spectrum.max() < 1e-12
    assert spectrum.min() >= -2 * field.rate


@pytest.mark.parametrize("kind", FLOWS)
@pytest.mark.parametrize("patch", [1, 5])
def test_rate_is_at_most_eight(kind: type[ImageFlow], patch: int) -> None:
    step = torch.zeros(1, 20, 20)
    step[..., 10:, 7:] = 1.0  # steep pixels beside flat ones
    for alpha in (1.0, 30.0, 1500.0):
        assert make(kind, alpha, patch).freeze(step).rate <= 8.0
        assert make(kind, alpha, patch).freeze(noise(3, 20, 20)).rate <= 8.0


def test_flow_diffuses_along_an_edge_but_not_across() -> None:
    x = torch.zeros(1, 9, 9, dtype=torch.float64)
    x[..., 5:] = 1.0  # between columns 4 and 5
    field = make(LaplaceBeltrami, 30.0).freeze(x)
    ((_, down), (_, right), *_) = field.weights
    assert down[4, 4] / field.mass[4, 4] > 0.9
    assert right[4, 4] / field.mass[4, 4] < 0.01


def test_gradients_reach_the_image() -> None:
    x = noise(2, 3, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda y: make(LaplaceBeltrami, 1.3, 3)(0.0, y), (x,))


@pytest.mark.parametrize("channels", [1, 3])
def test_bilateral_filter_is_the_double_loop(channels: int) -> None:
    x, t, alpha, radius = noise(channels, 6, 5), 1.3, 4.0, 2
    image, (h, w) = x.numpy(), (6, 5)
    expected = np.zeros_like(image)
    for i in range(h):
        for j in range(w):
            total = 0.0
            for a in range(max(0, i - radius), min(h, i + radius + 1)):
                for b in range(max(0, j - radius), min(w, j + radius + 1)):
                    colours = ((image[:, a, b] - image[:, i, j]) ** 2).sum()
                    k = math.exp(-((a - i) ** 2 + (b - j) ** 2) / (4 * t)) * math.exp(-(alpha**2) * colours / (4 * t))
                    expected[:, i, j] += k * image[:, a, b]
                    total += k
            expected[:, i, j] /= total
    np.testing.assert_allclose(bilateral(x, time=t, alpha=alpha, radius=radius).numpy(), expected, rtol=1e-12)


def test_bilateral_filter_at_alpha_zero_is_the_gaussian_filter() -> None:
    x, t = noise(1, 40, 41), 1.5
    found = bilateral(x, time=t, alpha=0.0)
    sigma = math.sqrt(2 * t)
    expected = scipy.ndimage.gaussian_filter(x.numpy(), (0.0, sigma, sigma), radius=(0, 7, 7))
    np.testing.assert_allclose(found[:, 7:-7, 7:-7].numpy(), expected[:, 7:-7, 7:-7], rtol=1e-10)


def test_default_bilateral_window_reaches_four_sigma() -> None:
    x = noise(1, 12, 12)
    assert torch.equal(bilateral(x, time=0.5, alpha=1.0), bilateral(x, time=0.5, alpha=1.0, radius=4))


def test_bilateral_window_is_no_larger_than_the_image() -> None:
    x = noise(1, 12, 10)
    assert torch.equal(bilateral(x, time=1e9, alpha=1.0), bilateral(x, time=1e9, alpha=1.0, radius=11))


def test_bilateral_filter_is_one_step_of_the_graph_flow() -> None:
    """One step dt = 1 with a = softmax(-|z_i - z_j|^2 / 4t) over the neighbours and the pixel itself is eq. (6)."""
    x, t, alpha = noise(2, 5, 6), 0.7, 3.0
    everywhere = [(down, right) for down in range(5) for right in range(-5, 6) if (down, right) > (0, 0)]
    pixels = PixelGraph.build(x, alpha=alpha, offsets=everywhere)
    z = pixels.nodes(x)
    flow = LinearFlow(Gaussian(pixels.joint, length=math.sqrt(2 * t)).double())
    field = flow.bind(z, pixels.edges.with_loops(1.0))
    with torch.no_grad():
        z1 = solve(field, z, [0.0, 1.0], Scheme(Euler(), ConstantSteps(1.0))).ys[-1]
    torch.testing.assert_close(pixels.image(z1), bilateral(x, time=t, alpha=alpha, radius=6))


@pytest.mark.parametrize(("time", "alpha"), [(0.0, 1.0), (1.0, -1.0)])
def test_bilateral_refuses_bad_arguments(time: float, alpha: float) -> None:
    with pytest.raises(ValueError, match="positive `time` and an `alpha` of at least 0"):
        bilateral(noise(1, 3, 3), time=time, alpha=alpha)
