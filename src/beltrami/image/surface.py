"""An image as a surface in space, and its metric."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from beltrami.image.pixels import DOWN, RIGHT, check_image, pixel_pairs


class Pullback(NamedTuple):
    r"""The Riemannian metric of the surface, a symmetric matrix :math:`G = \begin{pmatrix} g_{11} & g_{12} \\
    g_{12} & g_{22} \end{pmatrix}` at each pixel, :math:`u_1` down and :math:`u_2` to the right; each entry (h, w)."""

    g11: Tensor
    g12: Tensor
    g22: Tensor

    @property
    def det(self) -> Tensor:
        """The determinant of G, at least one."""
        return self.g11 * self.g22 - self.g12.square()

    @property
    def indicator(self) -> Tensor:
        r"""The edge indicator :math:`a = 1 / \sqrt{\det G}` of eq. (4): one where the image is flat, small on edges."""
        return self.det.rsqrt()


@dataclass(frozen=True)
class Surface:
    r"""The image as the surface :math:`z(u) = (u, \alpha x(u))`, with the metric of eq. (2).

    .. math:: G = I + \alpha^2 \sum_c \nabla x_c \nabla x_c^\top

    With patches, the features of a pixel are the :math:`k \times k` pixels around it that lie in the image, with
    weights that sum to one: the sum above becomes its mean over the patch. A single pixel's gradient is mostly noise;
    the mean separates edges from noise much better.

    Squared derivatives are means of squared one-sided differences, products are those of central differences; so the
    determinant is never below one. Differences across the border are zero.

    ``alpha`` is the height of the surface per grey value: 0 is the flat plane, and edges much higher than
    :math:`1 / \alpha` are kept. ``patch`` is k, odd; 1 for no patches.
    """

    alpha: float
    patch: int = 1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.alpha) and self.alpha >= 0.0):
            raise ValueError(f"Surface needs a finite `alpha` of at least 0; got {self.alpha}.")
        if self.patch < 1 or self.patch % 2 == 0:
            raise ValueError(f"Surface needs an odd `patch`, 1 for none; got {self.patch}.")

    def pullback(self, x: Tensor) -> Pullback:
        """Return the metric G at every pixel of ``x`` (c, h, w)."""
        check_image(x)
        pairs = pixel_pairs(x, DOWN), pixel_pairs(x, RIGHT)
        down, right = ((there - here).square().sum(0) for here, there in pairs)
        padded = F.pad(x[None], (1, 1, 1, 1), mode="replicate")[0]
        central = padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1], padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]
        down_squared = 0.5 * (F.pad(down, (0, 0, 1, 0)) + F.pad(down, (0, 0, 0, 1)))
        right_squared = 0.5 * (F.pad(right, (1, 0)) + F.pad(right, (0, 1)))
        products = torch.stack((down_squared, 0.25 * (central[0] * central[1]).sum(0), right_squared))
        if self.patch > 1:
            k, reach = self.patch, self.patch // 2
            products = F.avg_pool2d(products, (k, 1), 1, (reach, 0), count_include_pad=False)
            products = F.avg_pool2d(products, (1, k), 1, (0, reach), count_include_pad=False)
        g11, g12, g22 = self.alpha**2 * products
        return Pullback(1 + g11, g12, 1 + g22)
