"""Surface: an image as a surface in space, and the metric it inherits there."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from beltrami.image.grid import DOWN, RIGHT, check_image, ends


class Pullback(NamedTuple):
    r"""The Riemannian metric of the surface, a symmetric matrix :math:`G = \begin{pmatrix} g_{11} & g_{12} \\
    g_{12} & g_{22} \end{pmatrix}` at each pixel, with :math:`u_1` going down and :math:`u_2` to the right.

    Shapes:
        each entry (h, w).
    """

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

    With patches, the features of a pixel are the :math:`k \times k` pixels around it, as far as they lie in the image,
    each weighted so that together they count as one: the sum above becomes its mean over the patch. That tells an edge
    from noise much better than the pixel alone, whose gradient is mostly noise.

    Squared derivatives are means of the squared differences to either side, products those of central differences; so
    the determinant is never below one. Nothing changes across the border.

    Args:
        alpha: how high features stand above the plane, per grey value; 0 is the flat plane. Edges much higher than
            :math:`1 / \alpha` are kept.
        patch: k, odd; 1 for no patches.

    Shapes:
        ``x`` (c, h, w) -> three times (h, w).
    """

    alpha: float
    patch: int = 1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.alpha) and self.alpha >= 0.0):
            raise ValueError(f"Surface needs a finite `alpha` of at least 0; got {self.alpha}.")
        if self.patch < 1 or self.patch % 2 == 0:
            raise ValueError(f"Surface needs an odd `patch`, 1 for none; got {self.patch}.")

    def pullback(self, x: Tensor) -> Pullback:
        """G at every pixel."""
        check_image(x)
        down, right = (_difference(x, offset).square().sum(0) for offset in (DOWN, RIGHT))
        wide = F.pad(x[None], (1, 1, 1, 1), mode="replicate")[0]
        central = wide[:, 2:, 1:-1] - wide[:, :-2, 1:-1], wide[:, 1:-1, 2:] - wide[:, 1:-1, :-2]
        products = torch.stack(
            (
                0.5 * (F.pad(down, (0, 0, 1, 0)) + F.pad(down, (0, 0, 0, 1))),
                0.25 * (central[0] * central[1]).sum(0),
                0.5 * (F.pad(right, (1, 0)) + F.pad(right, (0, 1))),
            )
        )
        if self.patch > 1:
            k, reach = self.patch, self.patch // 2
            products = F.avg_pool2d(products, (k, 1), 1, (reach, 0), count_include_pad=False)
            products = F.avg_pool2d(products, (1, k), 1, (0, reach), count_include_pad=False)
        g11, g12, g22 = self.alpha**2 * products
        return Pullback(1 + g11, g12, 1 + g22)


def patches(x: Tensor, size: int) -> Tensor:
    """The image whose channels are the pixels around each pixel; beyond the border the nearest pixel repeats.

    Shapes:
        ``x`` (c, h, w) -> (size^2 c, h, w), the patch's pixels row by row, each with its c channels.
    """
    check_image(x)
    if size < 1 or size % 2 == 0:
        raise ValueError(f"`size` of a patch must be odd; got {size}.")
    (h, w), reach = x.shape[1:], size // 2
    wide = F.pad(x[None], (reach,) * 4, mode="replicate")[0]
    return torch.cat([wide[:, i : i + h, j : j + w] for i in range(size) for j in range(size)])


def _difference(x: Tensor, offset: tuple[int, int]) -> Tensor:
    here, there = ends(x, offset)
    return there - here
