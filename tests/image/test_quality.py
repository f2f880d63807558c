"""PSNR and SSIM against their definitions and scikit-image; the noise estimate against known noise."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from beltrami.image import matched_alpha, noise_level, psnr, ssim


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_psnr_is_its_definition() -> None:
    x = torch.zeros(1, 4, 4)
    assert psnr(x + 0.1, x) == pytest.approx(20.0, abs=1e-5)
    assert psnr(x, x) == math.inf


def test_ssim_of_one_window_is_its_definition() -> None:
    x, y = noise(1, 11, 11)[0].numpy(), noise(1, 11, 11, seed=1)[0].numpy()
    near = np.exp(-0.5 * (np.arange(-5, 6) / 1.5) ** 2)
    k = np.outer(near, near) / near.sum() ** 2
    mx, my = (k * x).sum(), (k * y).sum()
    vx, vy, cov = (k * (x - mx) ** 2).sum(), (k * (y - my) ** 2).sum(), (k * (x - mx) * (y - my)).sum()
    c1, c2 = 0.01**2, 0.03**2
    expected = (2 * mx * my + c1) * (2 * cov + c2) / ((mx**2 + my**2 + c1) * (vx + vy + c2))
    assert ssim(torch.from_numpy(x)[None], torch.from_numpy(y)[None]) == pytest.approx(expected, rel=1e-10)


@pytest.mark.slow  # the import of scikit-image
def test_psnr_and_ssim_agree_with_scikit_image() -> None:
    metrics = pytest.importorskip("skimage.metrics")
    clean = noise(3, 24, 31)
    x = clean + 0.2 * (noise(3, 24, 31, seed=1) - 0.5)
    a, b = clean.permute(1, 2, 0).numpy(), x.permute(1, 2, 0).numpy()
    assert psnr(x, clean) == pytest.approx(metrics.peak_signal_noise_ratio(a, b, data_range=1.0))
    expected = metrics.structural_similarity(
        a, b, data_range=1.0, channel_axis=-1, gaussian_weights=True, sigma=1.5, use_sample_covariance=False
    )
    assert ssim(x, clean) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("sigma", [0.02, 0.1])
def test_noise_on_slopes_and_edges_is_estimated(sigma: float) -> None:
    clean = torch.linspace(0.0, 1.0, 120, dtype=torch.float64).expand(3, 100, 120).clone()
    clean[:, 50:] = 1.0 - clean[:, 50:]
    x = clean + sigma * torch.randn(clean.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert noise_level(x) == pytest.approx(sigma, rel=0.05)
    assert matched_alpha(x) == pytest.approx(3 / (sigma * math.sqrt(3)), rel=0.05)
    assert noise_level(clean) < 1e-12


def test_alpha_is_finite_without_noise() -> None:
    assert noise_level(torch.zeros(1, 2, 9)) == 0.0
    assert matched_alpha(torch.zeros(1, 5, 5)) == 3 * 510


def test_bad_images_are_refused() -> None:
    with pytest.raises(ValueError, match=r"differ in shape: \(1, 4, 4\) and \(1, 4, 5\)"):
        psnr(torch.zeros(1, 4, 4), torch.zeros(1, 4, 5))
    with pytest.raises(ValueError, match="at least 11 x 11 pixels; got 10 x 12"):
        ssim(torch.zeros(1, 10, 12), torch.zeros(1, 10, 12))
