"""The bilateral filter: one step with the kernel that the Beltrami flow has at short times."""

import math

import torch
from torch import Tensor

from beltrami.image.grid import check_image, ends


def bilateral(x: Tensor, *, time: float, alpha: float, radius: int | None = None) -> Tensor:
    r"""Average over a window, weighted by distance in the plane and in features, eq. (6).

    .. math:: x(u, t) = \frac{\sum_v x(v)\, k(u, v)}{\sum_v k(u, v)}, \qquad
        k(u, v) = e^{-\|u - v\|^2 / 4t} e^{-\alpha^2 \|x(u) - x(v)\|^2 / 4t}

    The paper's factor :math:`(4 \pi t)^{-d/2}` normalises the first exponential alone, and only with the exponent 1 of
    the plane, eq. (5); weights that depend on the image have to be divided by their own sum. At ``alpha`` 0 it is the
    Gaussian filter of :math:`\sigma = \sqrt{2t}`, its kernel cut off at the border.

    Args:
        time: t; the Gaussian in the plane has :math:`\sigma = \sqrt{2t}`.
        alpha: the Gaussian of features has :math:`\sigma = \sqrt{2t} / \alpha`.
        radius: half the window, in pixels; four :math:`\sigma` by default.

    Shapes:
        ``x`` (c, h, w) -> (c, h, w).
    """
    check_image(x)
    if not (time > 0.0 and alpha >= 0.0):
        raise ValueError(f"bilateral needs a positive `time` and an `alpha` of at least 0; got {time} and {alpha}.")
    reach = math.ceil(4.0 * math.sqrt(2.0 * time)) if radius is None else radius
    total, weight = x.clone(), torch.ones_like(x[0])
    for down in range(reach + 1):
        for right in range(-reach if down else 1, reach + 1):
            here, there = ends(x, (down, right))
            apart = alpha**2 * (there - here).square().sum(0) + (down**2 + right**2)
            k = torch.exp(-apart / (4.0 * time))
            for share, values in zip(ends(total, (down, right)), (there, here), strict=True):
                share.addcmul_(k, values)
            for share in ends(weight, (down, right)):
                share += k
    return total / weight
