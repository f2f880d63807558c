"""Flow: what drives the features of an image, from the metric of its surface."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from beltrami.image.diffusion import Diffusion, anisotropic, isotropic
from beltrami.image.surface import Pullback, Surface


class ImageFlow(ABC):
    """A flow of images. It is itself the vector field f(t, x) with the metric taken at x; ``freeze`` holds it fixed.

    All channels follow the same diffusion, and all of them make the metric: that is what aligns their gradients.
    Whatever the image and alpha, the rate of the diffusion is at most eight, so that explicit steps need not be short.
    """

    surface: Surface

    @abstractmethod
    def diffusion(self, metric: Pullback) -> Diffusion:
        """The diffusion on a surface of this metric."""

    def freeze(self, x: Tensor) -> Diffusion:
        """The linear flow with the metric of ``x`` (c, h, w)."""
        return self.diffusion(self.surface.pullback(x))

    def __call__(self, t: float, x: Tensor) -> Tensor:
        return self.freeze(x)(t, x)


@dataclass(frozen=True)
class LaplaceBeltrami(ImageFlow):
    r"""The Beltrami flow, eq. (1), with the Laplace-Beltrami operator of the surface.

    .. math:: \frac{\partial x}{\partial t} = \Delta_G x
        = \frac{1}{\sqrt{\det G}} \mathrm{div} \big( \sqrt{\det G}\, G^{-1} \nabla x \big)

    It diffuses along edges as on the plane and across them hardly at all. While the metric is held, it conserves the
    mean over the surface, :math:`\sum_i \sqrt{\det G_i}\, x_i`, not that over the plane.
    """

    surface: Surface

    def diffusion(self, metric: Pullback) -> Diffusion:
        area = metric.det.sqrt()
        return anisotropic(metric.g22 / area, -metric.g12 / area, metric.g11 / area, area)


@dataclass(frozen=True)
class Projected(ImageFlow):
    r"""The Beltrami flow as eq. (3) has it, with the scalar diffusivity a of eq. (4).

    .. math:: \frac{\partial x}{\partial t} = a\, \mathrm{div}(a \nabla x), \qquad a = \frac{1}{\sqrt{\det G}}

    For grey images without patches it is :class:`LaplaceBeltrami`, since :math:`G^{-1} \nabla x = \nabla x / \det G`.
    Otherwise it stops at edges without going along them.
    """

    surface: Surface

    def diffusion(self, metric: Pullback) -> Diffusion:
        a = metric.indicator
        return isotropic(a, 1 / a)


@dataclass(frozen=True)
class Divergence(ImageFlow):
    r"""The flow that the paper carries over to graphs, eq. (3) without its first factor.

    .. math:: \frac{\partial x}{\partial t} = \mathrm{div}(a \nabla x), \qquad a = \frac{1}{\sqrt{\det G}}

    Conserves the mean of every channel.
    """

    surface: Surface

    def diffusion(self, metric: Pullback) -> Diffusion:
        return isotropic(metric.indicator, torch.ones_like(metric.g11))


@dataclass(frozen=True)
class InverseMetric(ImageFlow):
    r"""The Laplace-Beltrami operator without either area element.

    .. math:: \frac{\partial x}{\partial t} = \mathrm{div}(G^{-1} \nabla x)

    Conserves the mean of every channel. The best of the four at removing noise (docs/images.md).
    """

    surface: Surface

    def diffusion(self, metric: Pullback) -> Diffusion:
        det = metric.det
        return anisotropic(metric.g22 / det, -metric.g12 / det, metric.g11 / det, torch.ones_like(det))
