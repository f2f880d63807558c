"""Quality: how near an image is to a clean one."""

import math

import torch
from torch import Tensor

from beltrami.image.grid import check_image

SIGMA, REACH = 1.5, 5  # the window of Wang et al.: 11 x 11
C1, C2 = 0.01**2, 0.03**2


def psnr(x: Tensor, clean: Tensor) -> float:
    r"""Peak signal-to-noise ratio in decibels, :math:`-10 \log_{10} \mathrm{mean} (x - x^*)^2`, for values in [0, 1].

    Shapes:
        twice (c, h, w); infinite where they are equal.
    """
    _check(x, clean)
    error = float((x.double() - clean.double()).square().mean())
    return -10.0 * math.log10(error) if error > 0.0 else math.inf


def ssim(x: Tensor, clean: Tensor) -> float:
    r"""Structural similarity, after Wang, Bovik, Sheikh and Simoncelli (2004), for values in [0, 1].

    .. math:: \mathrm{mean}\, \frac{(2 \mu_x \mu_y + c_1)(2 \sigma_{xy} + c_2)}
        {(\mu_x^2 + \mu_y^2 + c_1)(\sigma_x^2 + \sigma_y^2 + c_2)}

    with means and covariances under a Gaussian window of 11 x 11 pixels, over all windows that lie in the image and
    over channels.

    Shapes:
        twice (c, h, w), at least 11 x 11 pixels.
    """
    _check(x, clean)
    if min(x.shape[1:]) < 2 * REACH + 1:
        raise ValueError(f"ssim looks at windows of 11 x 11 pixels; the image has {x.shape[1]} x {x.shape[2]}.")
    x, y = x.double(), clean.double()
    mean_x, mean_y = _window(x), _window(y)
    var_x, var_y = _window(x * x) - mean_x**2, _window(y * y) - mean_y**2
    cov = _window(x * y) - mean_x * mean_y
    similar = (2 * mean_x * mean_y + C1) * (2 * cov + C2) / ((mean_x**2 + mean_y**2 + C1) * (var_x + var_y + C2))
    return float(similar.mean())


def _window(x: Tensor) -> Tensor:
    """Averages under the Gaussian window, (c, h, w) -> (c, h - 10, w - 10); shifted sums beat a convolution here."""
    k = torch.exp(-0.5 * (torch.arange(-REACH, REACH + 1, dtype=torch.float64) / SIGMA) ** 2)
    weights: list[float] = (k / k.sum()).tolist()
    for dim in (1, 2):
        inside = x.shape[dim] - 2 * REACH
        total = weights[0] * x.narrow(dim, 0, inside)
        for shift, weight in enumerate(weights[1:], start=1):
            total.add_(x.narrow(dim, shift, inside), alpha=weight)
        x = total
    return x


def _check(x: Tensor, clean: Tensor) -> None:
    check_image(x)
    check_image(clean, name="clean")
    if x.shape != clean.shape:
        raise ValueError(f"the images differ in shape: {tuple(x.shape)} and {tuple(clean.shape)}.")
