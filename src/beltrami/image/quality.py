"""Quality of an image: its noise, and its distance from a clean image."""

import math

import torch
from torch import Tensor

from beltrami.arguments import checked
from beltrami.image.surface import check_image

STEEPNESS = 3.0  # alpha times the noise: slopes as large as the noise are steep, those of a third of it are not
LEAST_NOISE = 1.0 / 510.0  # half a step of 8 bits: no image is less noisy than its rounding
MASK_NORM = 6.0  # the Euclidean norm of Immerkær's mask
NORMAL_MEDIAN = 0.6745  # median of the absolute value of a standard normal variable
SIGMA, REACH = 1.5, 5  # the window of SSIM: 11 x 11 pixels
C1, C2 = 0.01**2, 0.03**2


@checked
def noise_level(x: Tensor) -> float:
    r"""Return the standard deviation of white noise in an image (c, h, w), after Immerkær (1996).

    .. math:: \hat\sigma = \frac{1}{6 \cdot 0.6745}\, \mathrm{median} |N \star x|, \qquad
        N = \begin{pmatrix} 1 & -2 & 1 \\ -2 & 4 & -2 \\ 1 & -2 & 1 \end{pmatrix}

    The mask ignores planes and straight edges along the axes, the median the few pixels with stronger detail. Fine
    texture counts as noise. Images under 3 x 3 pixels give 0.
    """
    check_image(x)
    if min(x.shape[1:]) < 3:
        return 0.0
    rows = x[:, :-2] - 2 * x[:, 1:-1] + x[:, 2:]
    masked = rows[..., :-2] - 2 * rows[..., 1:-1] + rows[..., 2:]
    return float(torch.median(masked.abs())) / (MASK_NORM * NORMAL_MEDIAN)


@checked
def matched_alpha(x: Tensor) -> float:
    r"""Return an alpha at which edges stand out from the noise, :math:`3 / (\hat\sigma \sqrt{c})` for c channels.

    With this alpha and patches of 5 x 5 pixels, noise is gone and edges remain after a time of about 6, for grey and
    colour and any noise level.
    """
    return STEEPNESS / (max(noise_level(x), LEAST_NOISE) * math.sqrt(x.shape[0]))


@checked
def psnr(x: Tensor, clean: Tensor) -> float:
    r"""Return the peak signal-to-noise ratio in decibels, :math:`-10 \log_{10} \mathrm{mean} (x - x^*)^2`, of images
    (c, h, w) with values in [0, 1]; infinite if they are equal."""
    _check_pair(x, clean)
    error = float((x.double() - clean.double()).square().mean())
    return -10.0 * math.log10(error) if error > 0.0 else math.inf


@checked
def ssim(x: Tensor, clean: Tensor) -> float:
    r"""Return the structural similarity of Wang, Bovik, Sheikh and Simoncelli (2004), for values in [0, 1].

    .. math:: \mathrm{mean}\, \frac{(2 \mu_x \mu_y + c_1)(2 \sigma_{xy} + c_2)}
        {(\mu_x^2 + \mu_y^2 + c_1)(\sigma_x^2 + \sigma_y^2 + c_2)}

    Means and covariances are those under a Gaussian window of 11 x 11 pixels; the outer mean is over all windows
    inside the image and over channels.
    """
    _check_pair(x, clean)
    if min(x.shape[1:]) < 2 * REACH + 1:
        raise ValueError(f"ssim needs images of at least 11 x 11 pixels; got {x.shape[1]} x {x.shape[2]}.")
    x, y = x.double(), clean.double()
    mean_x, mean_y = _window_mean(x), _window_mean(y)
    var_x, var_y = _window_mean(x * x) - mean_x**2, _window_mean(y * y) - mean_y**2
    cov = _window_mean(x * y) - mean_x * mean_y
    similar = (2 * mean_x * mean_y + C1) * (2 * cov + C2) / ((mean_x**2 + mean_y**2 + C1) * (var_x + var_y + C2))
    return float(similar.mean())


def _window_mean(x: Tensor) -> Tensor:
    """Average under the Gaussian window, (c, h, w) -> (c, h - 10, w - 10), by sums, faster than a convolution."""
    k = torch.exp(-0.5 * (torch.arange(-REACH, REACH + 1, dtype=torch.float64) / SIGMA) ** 2)
    weights: list[float] = (k / k.sum()).tolist()
    for dim in (1, 2):
        inside = x.shape[dim] - 2 * REACH
        total = weights[0] * x.narrow(dim, 0, inside)
        for shift, weight in enumerate(weights[1:], start=1):
            total.add_(x.narrow(dim, shift, inside), alpha=weight)
        x = total
    return x


def _check_pair(x: Tensor, clean: Tensor) -> None:
    check_image(x)
    check_image(clean, name="clean")
    if x.shape != clean.shape:
        raise ValueError(f"the images differ in shape: {tuple(x.shape)} and {tuple(clean.shape)}.")
