"""Diffusion: a linear flow between neighbouring pixels."""

from dataclasses import dataclass

import torch
from torch import Tensor

from beltrami.image.grid import DOWN, FALLING, RIGHT, RISING, Offset, ends


@dataclass(frozen=True, eq=False)
class Diffusion:
    r"""The linear vector field that discretises :math:`\frac{1}{\mu} \mathrm{div}(D \nabla x)`.

    .. math:: f(x)_i = \frac{1}{\mu_i} \sum_j w_{ij} (x_j - x_i), \qquad w_{ij} = w_{ji} \ge 0

    A graph flow, eq. (7), on the grid. It conserves :math:`\sum_i \mu_i x_i`. Weights are never negative, so what it
    does to an image stays between the image's extremes: exactly, after an implicit step of any length and after an
    explicit one of at most :math:`1 / \mathrm{rate}`.

    Args:
        weights: for each offset to a neighbour, the weights w of these pairs.
        mass: mu, positive.

    Shapes:
        ``weights`` as the two ends of the offset, see ``ends``; ``mass`` (h, w); ``x`` (c, h, w).
    """

    weights: tuple[tuple[Offset, Tensor], ...]
    mass: Tensor

    def __call__(self, t: float, x: Tensor) -> Tensor:
        dx = torch.zeros_like(x)
        for offset, w in self.weights:
            here, there = ends(x, offset)
            flux = (there - here).mul_(w)  # in place here and below: memory is what takes time
            ends(dx, offset)[0].add_(flux)
            ends(dx, offset)[1].sub_(flux)
        return dx.div_(self.mass)

    @property
    def rate(self) -> float:
        r"""The largest :math:`\sum_j w_{ij} / \mu_i`, that is the fastest a pixel follows its neighbours; the
        eigenvalues lie between minus twice that and zero."""
        total = torch.zeros_like(self.mass)
        for offset, w in self.weights:
            for end in ends(total, offset):
                end += w
        return float((total / self.mass).max())


def isotropic(a: Tensor, mass: Tensor) -> Diffusion:
    """D = a I for a scalar diffusivity ``a`` (h, w): between four neighbours."""
    return Diffusion(tuple((offset, _between(a, offset)) for offset in (DOWN, RIGHT)), mass)


def anisotropic(d11: Tensor, d12: Tensor, d22: Tensor, mass: Tensor) -> Diffusion:
    r"""D as a positive definite matrix at each pixel: between eight neighbours.

    :math:`|d_{12}|` goes along the diagonal of its sign, and :math:`d_{11}` and :math:`d_{22}` are lessened by as much.
    Where that would leave less than nothing, which is where one eigenvalue is more than 5.8 times the other and its
    direction lies badly, nothing is left: a little too much diffusion, where a negative weight would make new extremes.
    """
    cross = d12.abs()
    along = {
        DOWN: (d11 - cross).clamp(min=0),
        RIGHT: (d22 - cross).clamp(min=0),
        FALLING: d12.clamp(min=0),
        RISING: (-d12).clamp(min=0),
    }
    return Diffusion(tuple((offset, _between(value, offset)) for offset, value in along.items()), mass)


def _between(value: Tensor, offset: Offset) -> Tensor:
    """The harmonic mean of both pixels, at most twice the lesser: a steep neighbour does not hurry a flat pixel."""
    here, there = ends(value, offset)
    return 2 * here * there / (here + there).clamp(min=torch.finfo(value.dtype).tiny)
