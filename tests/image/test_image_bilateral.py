"""The bilateral filter against eq. (6) in a double loop, the Gaussian filter, and a step of the graph flow."""

import math

import numpy as np
import pytest
import scipy.ndimage
import torch
from torch import Tensor

from beltrami.diffusivity import Gaussian
from beltrami.flow import LinearFlow
from beltrami.image import PixelGraph, bilateral, disc
from beltrami.scheme import ConstantSteps, Euler, Scheme, solve


def noise(*shape: int) -> Tensor:
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("channels", [1, 3])
def test_filter_is_the_double_loop(channels: int) -> None:
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


def test_alpha_zero_is_the_gaussian_filter_inside() -> None:
    x, t = noise(1, 40, 41), 1.5
    found = bilateral(x, time=t, alpha=0.0)
    sigma = math.sqrt(2 * t)
    expected = scipy.ndimage.gaussian_filter(x.numpy(), (0.0, sigma, sigma), radius=(0, 7, 7))
    np.testing.assert_allclose(found[:, 7:-7, 7:-7].numpy(), expected[:, 7:-7, 7:-7], rtol=1e-10)


def test_window_reaches_four_sigma_unless_told() -> None:
    x = noise(1, 12, 12)
    assert torch.equal(bilateral(x, time=0.5, alpha=1.0), bilateral(x, time=0.5, alpha=1.0, radius=4))


def test_filter_is_one_step_of_the_graph_flow() -> None:
    """a = softmax(-|z_i - z_j|^2 / 4t) over neighbours and the pixel itself, stepped by dt = 1, is eq. (6)."""
    x, t, alpha = noise(2, 5, 6), 0.7, 3.0
    pixels = PixelGraph.build(x, alpha=alpha, offsets=disc(20))
    z = pixels.nodes(x)
    flow = LinearFlow(Gaussian(pixels.joint, length=math.sqrt(2 * t)).double())
    field = flow.bind(z, pixels.edges.with_loops(1.0))
    with torch.no_grad():
        z1 = solve(field, z, [0.0, 1.0], Scheme(Euler(), ConstantSteps(1.0))).ys[-1]
    torch.testing.assert_close(pixels.image(z1), bilateral(x, time=t, alpha=alpha, radius=6))


def test_constant_image_is_unmoved() -> None:
    x = torch.full((3, 4, 4), 0.6, dtype=torch.float64)
    torch.testing.assert_close(bilateral(x, time=2.0, alpha=5.0), x)


@pytest.mark.parametrize(("time", "alpha"), [(0.0, 1.0), (1.0, -1.0)])
def test_arguments_that_make_no_sense_are_refused(time: float, alpha: float) -> None:
    with pytest.raises(ValueError, match="positive `time` and an `alpha` of at least 0"):
        bilateral(noise(1, 3, 3), time=time, alpha=alpha)
