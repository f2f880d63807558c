"""Neighbouring pixels: offsets, views of both pixels of each pair, and the pixel graph of an image."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from beltrami.graph import Edges
from beltrami.joint import Joint

Offset: TypeAlias = tuple[int, int]

DOWN, RIGHT = (1, 0), (0, 1)
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
