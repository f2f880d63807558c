"""Noise: how much of it an image has."""

import math

import torch
from torch import Tensor

from beltrami.image.grid import check_image

STEEP = 3.0  # alpha times the noise: slopes of the noise's own size are steep, those of a third of it are not
LEAST = 1.0 / 510.0  # half a step of 8 bits: nothing is less noisy than its rounding
NORM = 6.0  # of the mask below: what it makes of white noise is six times as large
MEDIAN = 0.6745  # of the absolute value of a standard normal


def noise_level(x: Tensor) -> float:
    r"""The standard deviation of white noise in an image, after Immerkær (1996).

    .. math:: \hat\sigma = \frac{1}{6 \cdot 0.6745}\, \mathrm{median} |N \star x|, \qquad
        N = \begin{pmatrix} 1 & -2 & 1 \\ -2 & 4 & -2 \\ 1 & -2 & 1 \end{pmatrix}

    The mask is blind to planes and to straight edges along the axes, and the median to the few pixels where there is
    more. Fine texture counts as noise.

    Shapes:
        ``x`` (c, h, w), at least 3 x 3 pixels; fewer have no noise to speak of and give 0.
    """
    check_image(x)
    if min(x.shape[1:]) < 3:
        return 0.0
    rows = x[:, :-2] - 2 * x[:, 1:-1] + x[:, 2:]
    masked = rows[..., :-2] - 2 * rows[..., 1:-1] + rows[..., 2:]
    return float(torch.median(masked.abs())) / (NORM * MEDIAN)


def matched_alpha(x: Tensor) -> float:
    r"""The alpha of a surface whose edges stand out from the noise, :math:`3 / (\hat\sigma \sqrt{c})` for c channels.

    With it and patches of 5 x 5 pixels, the time after which noise is gone and edges are not is about 6, for grey and
    colour, whatever the noise.
    """
    return STEEP / (max(noise_level(x), LEAST) * math.sqrt(x.shape[0]))
