"""Graph: an image as a graph of pixels, for the flows of graphs."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from beltrami.graph import Edges
from beltrami.image.grid import FOUR, Offset, check_image, ends
from beltrami.joint import Joint


@dataclass(frozen=True, eq=False)
class PixelGraph:
    r"""The pixels of an image as nodes :math:`z_i = (u_i, \alpha x_i)`, row by row, with edges to their neighbours.

    A graph flow does the rest: with ``z = pixels.nodes(x)``, ``LinearFlow(Gaussian(pixels.joint)).bind(z,
    pixels.edges)`` is eq. (7) with the bilateral kernel of eq. (6) for its diffusivity.

    Args:
        edges: both directions of every pair of neighbours.
        shape: channels, height and width of the image.
        alpha: the scale of features beside that of positions, which are counted in pixels; positive.
    """

    edges: Edges
    shape: tuple[int, int, int]
    alpha: float

    @staticmethod
    def build(x: Tensor, *, alpha: float, offsets: Sequence[Offset] = FOUR) -> "PixelGraph":
        """The graph of images like ``x`` (c, h, w); ``FOUR``, ``EIGHT`` or ``disc(radius)`` are the neighbours."""
        check_image(x)
        if not alpha > 0.0:
            raise ValueError(f"PixelGraph needs a positive `alpha`, to find x again in z; got {alpha}.")
        c, h, w = x.shape
        index = torch.arange(h * w, device=x.device).view(h, w)
        pairs = [torch.stack([end.reshape(-1) for end in ends(index, offset)]) for offset in offsets]
        one_way = torch.cat(pairs, dim=1)
        edges = Edges.build(torch.cat((one_way, one_way.flip(0)), dim=1), num_nodes=h * w)
        return PixelGraph(edges, (c, h, w), alpha)

    @property
    def joint(self) -> Joint:
        """Two channels of positions, then the features."""
        return Joint(pos=2, feat=self.shape[0])

    def nodes(self, x: Tensor) -> Tensor:
        """(c, h, w) -> z (h w, 2 + c)."""
        if tuple(x.shape) != self.shape:
            raise ValueError(f"this graph is of images {self.shape}; got {tuple(x.shape)}: build another.")
        _, h, w = self.shape
        rows, columns = torch.arange(h, device=x.device), torch.arange(w, device=x.device)
        u = torch.cartesian_prod(rows, columns).to(x.dtype)
        return torch.cat((u, self.alpha * x.flatten(1).t()), dim=1)

    def image(self, z: Tensor) -> Tensor:
        """The features of z (h w, 2 + c) as an image (c, h, w); positions, wherever they went, are left out."""
        return (z[:, self.joint.x] / self.alpha).t().reshape(self.shape)
