"""An image as a surface in space: neighbouring pixels, the metric, and the pixel graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from beltrami.arguments import checked
from beltrami.geometry import scale_for_squares
from beltrami.graph import Edges
from beltrami.joint import Joint

Offset: TypeAlias = tuple[int, int]

DOWN, RIGHT = (1, 0), (0, 1)
STEEPEST = 1e100  # alpha whose square is still finite
FALLING, RISING = (1, 1), (1, -1)  # the two diagonals


def pixel_pairs(x: Tensor, offset: Offset) -> tuple[Tensor, Tensor]:
    """Return views of all pixels that have a neighbour at ``offset`` (rows down, columns right), and of the neighbours.

    Offsets point down, or right along the row, so that each pair of neighbours occurs once. ``x`` (..., h, w) -> twice
    (..., h - down, w - |right|).
    """
    down, right = offset
    assert down >= 0, "an offset points down or along the row"
    h, w = x.shape[-2:]
    left = max(0, -right)
    here = x[..., : max(0, h - down), left : max(left, w - max(0, right))]
    there = x[..., down:, max(0, right) : max(0, w - left)]
    return here, there


def check_image(x: Tensor, *, name: str = "x") -> None:
    """Refuse anything but a floating point image (c, h, w)."""
    if x.dim() != 3 or x.numel() == 0:
        raise ValueError(f"`{name}` must be an image (channels, height, width), not empty; got shape {tuple(x.shape)}.")
    if not x.dtype.is_floating_point:
        raise ValueError(f"`{name}` must be floating point; got {x.dtype}. Try `{name}.float() / 255`.")


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


@checked
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
        if not 0.0 <= self.alpha <= STEEPEST:
            raise ValueError(f"Surface needs a finite `alpha` of at least 0; got {self.alpha}.")
        if self.patch < 1 or self.patch % 2 == 0:
            raise ValueError(f"Surface needs an odd `patch`, 1 for none; got {self.patch}.")

    def pullback(self, x: Tensor) -> Pullback:
        """Return the metric G at every pixel of ``x`` (c, h, w)."""
        check_image(x)
        scale = scale_for_squares(x)
        x = x if scale == 1.0 else x * scale
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
        g11, g12, g22 = (self.alpha / scale) ** 2 * products
        return Pullback(1 + g11, g12, 1 + g22)


@dataclass(frozen=True, eq=False)
class PixelGraph:
    r"""The graph of an image: pixels are nodes :math:`z_i = (u_i, \alpha x_i)`, row by row, joined to their neighbours.

    With ``z = pixels.nodes(x)``, ``LinearFlow(Gaussian(pixels.joint)).bind(z, pixels.edges)`` is eq. (7) with the
    bilateral kernel of eq. (6) as its diffusivity. ``shape`` is (channels, height, width).
    """

    edges: Edges
    shape: tuple[int, int, int]
    alpha: float

    @staticmethod
    def build(x: Tensor, *, alpha: float, offsets: Sequence[Offset] = (DOWN, RIGHT)) -> "PixelGraph":
        """Build the graph of images shaped like ``x`` (c, h, w), where each pixel has neighbours at ``offsets``."""
        check_image(x)
        if not alpha > 0.0:
            raise ValueError(f"PixelGraph needs a positive `alpha`, to recover x from z; got {alpha}.")
        c, h, w = x.shape
        index = torch.arange(h * w, device=x.device).view(h, w)
        pairs = [torch.stack([end.reshape(-1) for end in pixel_pairs(index, offset)]) for offset in offsets]
        one_way = torch.cat(pairs, dim=1)
        edges = Edges.build(torch.cat((one_way, one_way.flip(0)), dim=1), num_nodes=h * w)
        return PixelGraph(edges, (c, h, w), alpha)

    @property
    def joint(self) -> Joint:
        """The layout of z: two channels of positions, then the features."""
        return Joint(pos=2, feat=self.shape[0])

    def nodes(self, x: Tensor) -> Tensor:
        """Return the state z (h w, 2 + c) of an image (c, h, w)."""
        if tuple(x.shape) != self.shape:
            raise ValueError(f"this graph is of images {self.shape}; got {tuple(x.shape)}: build another.")
        _, h, w = self.shape
        u = torch.cartesian_prod(torch.arange(h, device=x.device), torch.arange(w, device=x.device)).to(x.dtype)
        return torch.cat((u, self.alpha * x.flatten(1).t()), dim=1)

    def image(self, z: Tensor) -> Tensor:
        """Return the features of z (h w, 2 + c) as an image (c, h, w); positions are dropped."""
        return (z[:, self.joint.x] / self.alpha).t().reshape(self.shape)
