"""Flows of images, driven by the metric of the image's surface, and their time stepping with a frozen metric."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from beltrami.arguments import Positive, checked
from beltrami.geometry import scale_for_squares
from beltrami.image.surface import DOWN, FALLING, RIGHT, RISING, Offset, Pullback, Surface, check_image, pixel_pairs
from beltrami.scheme import ConstantSteps, Euler, Scheme, SymmetricEuler, solve

MAX_INTERVALS = 10_000  # of a flow with a frozen metric each


@dataclass(frozen=True, eq=False)
class PixelDiffusion:
    r"""The linear vector field that discretises :math:`\frac{1}{\mu} \mathrm{div}(D \nabla x)`.

    .. math:: f(x)_i = \frac{1}{\mu_i} \sum_j w_{ij} (x_j - x_i), \qquad w_{ij} = w_{ji} \ge 0

    A graph flow, eq. (7), on the grid. It conserves :math:`\sum_i \mu_i x_i`. The image stays within its extremes
    after an implicit step of any length and after an explicit step of at most :math:`1 / \mathrm{rate}`. ``weights``
    are, for each offset, the w of these pairs, shaped as in ``pixel_pairs``; ``mass`` is mu (h, w), positive.
    """

    weights: tuple[tuple[Offset, Tensor], ...]
    mass: Tensor

    def __call__(self, t: float, x: Tensor) -> Tensor:
        dx = torch.zeros_like(x)
        for offset, w in self.weights:
            here, there = pixel_pairs(x, offset)
            flux = (there - here).mul_(w)  # in place here and below: memory traffic dominates the time
            pixel_pairs(dx, offset)[0].add_(flux)
            pixel_pairs(dx, offset)[1].sub_(flux)
        return dx.div_(self.mass)

    @property
    def rate(self) -> float:
        r"""The largest :math:`\sum_j w_{ij} / \mu_i`; the eigenvalues lie between minus twice that and zero."""
        total = torch.zeros_like(self.mass)
        for offset, w in self.weights:
            for end in pixel_pairs(total, offset):
                end += w
        return float((total / self.mass).max())


def isotropic(a: Tensor, mass: Tensor) -> PixelDiffusion:
    """Return the diffusion between four neighbours with D = a I, for a scalar diffusivity ``a`` (h, w)."""
    return PixelDiffusion(tuple((offset, _harmonic_mean(a, offset)) for offset in (DOWN, RIGHT)), mass)


def anisotropic(d11: Tensor, d12: Tensor, d22: Tensor, mass: Tensor) -> PixelDiffusion:
    r"""Return the diffusion between eight neighbours with a positive definite matrix D at each pixel.

    :math:`|d_{12}|` becomes the weight along the diagonal of its sign and is subtracted from :math:`d_{11}` and
    :math:`d_{22}`. Differences below zero, possible where one eigenvalue is more than 5.8 times the other, are set to
    zero: a little too much diffusion, where a negative weight would create new extremes.
    """
    along = {DOWN: d11 - d12.abs(), RIGHT: d22 - d12.abs(), FALLING: d12, RISING: -d12}
    weights = ((offset, _harmonic_mean(value.clamp(min=0), offset)) for offset, value in along.items())
    return PixelDiffusion(tuple(weights), mass)


def _harmonic_mean(value: Tensor, offset: Offset) -> Tensor:
    """Return the harmonic mean of both pixels: at most twice the smaller, so that edges slow down flat neighbours."""
    here, there = pixel_pairs(value, offset)
    return 2 * here * there / (here + there).clamp(min=torch.finfo(value.dtype).tiny)


@checked
@dataclass(frozen=True)
class ImageFlow(ABC):
    """A flow of images: the vector field f(t, x) with the metric taken at x. ``freeze`` fixes the metric.

    All channels follow the same diffusion, of a rate of at most eight for any image and alpha, and all contribute to
    the metric, which aligns their gradients.
    """

    surface: Surface

    @abstractmethod
    def diffusion(self, metric: Pullback) -> PixelDiffusion:
        """Return the diffusion on a surface of this metric."""

    def freeze(self, x: Tensor) -> PixelDiffusion:
        """Return the linear flow with the metric of ``x`` (c, h, w)."""
        return self.diffusion(self.surface.pullback(x))

    def __call__(self, t: float, x: Tensor) -> Tensor:
        return self.freeze(x)(t, x)


class LaplaceBeltrami(ImageFlow):
    r"""The Beltrami flow, eq. (1), with the Laplace-Beltrami operator of the surface.

    .. math:: \frac{\partial x}{\partial t} = \Delta_G x
        = \frac{1}{\sqrt{\det G}} \mathrm{div} \big( \sqrt{\det G}\, G^{-1} \nabla x \big)

    It diffuses along edges as on the plane, and hardly across them. With a frozen metric it conserves the mean over the
    surface, :math:`\sum_i \sqrt{\det G_i}\, x_i`.
    """

    def diffusion(self, metric: Pullback) -> PixelDiffusion:
        area = metric.det.sqrt()
        return anisotropic(metric.g22 / area, -metric.g12 / area, metric.g11 / area, area)


class Projected(ImageFlow):
    r"""The Beltrami flow of eq. (3), with the scalar diffusivity a of eq. (4).

    .. math:: \frac{\partial x}{\partial t} = a\, \mathrm{div}(a \nabla x), \qquad a = \frac{1}{\sqrt{\det G}}

    For grey images without patches it equals :class:`LaplaceBeltrami`, since :math:`G^{-1} \nabla x = \nabla x /
    \det G`. Otherwise it stops at edges without diffusing along them.
    """

    def diffusion(self, metric: Pullback) -> PixelDiffusion:
        a = metric.indicator
        return isotropic(a, 1 / a)


class Divergence(ImageFlow):
    r"""The flow that the paper carries over to graphs, eq. (3) without its first factor; conserves every mean.

    .. math:: \frac{\partial x}{\partial t} = \mathrm{div}(a \nabla x), \qquad a = \frac{1}{\sqrt{\det G}}
    """

    def diffusion(self, metric: Pullback) -> PixelDiffusion:
        return isotropic(metric.indicator, torch.ones_like(metric.g11))


class InverseMetric(ImageFlow):
    r"""The Laplace-Beltrami operator without area elements; conserves every mean, and removes noise best of the four.

    .. math:: \frac{\partial x}{\partial t} = \mathrm{div}(G^{-1} \nabla x)
    """

    def diffusion(self, metric: Pullback) -> PixelDiffusion:
        det = metric.det
        return anisotropic(metric.g22 / det, -metric.g12 / det, metric.g11 / det, torch.ones_like(det))


@checked
@dataclass(frozen=True)
class Stepping(ABC):
    """How the linear flow of a frozen metric is solved; the metric is frozen for a time ``hold``.

    To evolve an image without freezing its metric, solve the flow itself: ``solve(flow, x, [0, time], scheme)``.
    """

    hold: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.hold) and self.hold > 0.0):
            raise ValueError(f"{type(self).__name__} needs a positive `hold`; got {self.hold}.")

    @abstractmethod
    def scheme(self, field: PixelDiffusion) -> Scheme:
        """Return the scheme that solves this flow."""


class Explicit(Stepping):
    """Euler steps of the largest length that keeps the image within its extremes: a quarter on the plane."""

    def scheme(self, field: PixelDiffusion) -> Scheme:
        rate = field.rate
        if not math.isfinite(rate):
            raise ValueError("the metric of the image's surface is not finite: choose a smaller `alpha`.")
        return Scheme(Euler(), ConstantSteps(1 / max(rate, 1 / self.hold)))


@checked
@dataclass(frozen=True)
class Implicit(Stepping):
    """One implicit Euler step for each metric: stable and within the extremes for any length; first order."""

    rtol: Positive = 1e-4  # of the linear solver

    def scheme(self, field: PixelDiffusion) -> Scheme:
        return Scheme(SymmetricEuler(field.mass, self.rtol), ConstantSteps(self.hold))


@checked
def evolve(x: Tensor, flow: ImageFlow, *, time: float, stepping: Stepping) -> Tensor:
    """Return the image (c, h, w) at ``time``, the last one of :func:`states`."""
    for _, y in states(x, flow, time=time, stepping=stepping):
        x = y
    return x


@checked
def states(x: Tensor, flow: ImageFlow, *, time: float, stepping: Stepping) -> Iterator[tuple[float, Tensor]]:
    """Return an iterator over the times and images (c, h, w) of a flow, from 0 to ``time``, after equal intervals of at
    most ``stepping.hold``, each with the metric of its start."""
    if not (math.isfinite(time) and time > 0.0):
        raise ValueError(f"`time` must be positive; got {time}.")
    if not time / stepping.hold < MAX_INTERVALS:
        raise ValueError(
            f"a flow to `time` {time:g} needs {time / stepping.hold:.4g} metrics, and at most {MAX_INTERVALS} are "
            f"allowed: choose a time below {MAX_INTERVALS * stepping.hold:g}, or a longer `hold`."
        )
    intervals = math.ceil(time / stepping.hold * (1.0 - 1e-9))
    return _states(x, flow, [k * (time / intervals) for k in range(intervals + 1)], stepping)


def _states(x: Tensor, flow: ImageFlow, ts: list[float], stepping: Stepping) -> Iterator[tuple[float, Tensor]]:
    yield ts[0], x
    for t0, t1 in pairwise(ts):
        field = flow.freeze(x)
        x = solve(field, x, [t0, t1], stepping.scheme(field)).ys[-1]
        yield t1, x


@checked
def bilateral(x: Tensor, *, time: float, alpha: float, radius: int | None = None) -> Tensor:
    r"""Return the bilateral filter of an image, the Beltrami flow's kernel at short times, eq. (6).

    .. math:: x(u, t) = \frac{\sum_v x(v)\, k(u, v)}{\sum_v k(u, v)}, \qquad
        k(u, v) = e^{-\|u - v\|^2 / 4t} e^{-\alpha^2 \|x(u) - x(v)\|^2 / 4t}

    Weights that depend on the image must be divided by their own sum; the paper's factor :math:`(4 \pi t)^{-d/2}`
    normalises only the first exponential, with the exponent 1 of the plane, eq. (5). At ``alpha`` 0 it is the
    Gaussian filter of :math:`\sigma = \sqrt{2t}`, its kernel cut off at the border. ``radius`` is half the window, in
    pixels, by default four :math:`\sigma`.
    """
    check_image(x)
    if not (0.0 < time < math.inf and 0.0 <= alpha < math.inf):
        raise ValueError(f"bilateral needs a positive `time` and an `alpha` of at least 0; got {time} and {alpha}.")
    reach = max(x.shape[1:]) - 1  # pixels further apart do not exist
    reach = min(reach, math.ceil(min(4.0 * math.sqrt(2.0 * time), reach)) if radius is None else radius)
    total, weight, scale = x.clone(), torch.ones_like(x[0]), scale_for_squares(x)
    steepness = (alpha / scale) ** 2
    for down in range(reach + 1):
        for right in range(-reach if down else 1, reach + 1):
            here, there = pixel_pairs(x, (down, right))
            difference = there - here if scale == 1.0 else there * scale - here * scale
            distance = steepness * difference.square().sum(0) + (down**2 + right**2)
            k = torch.exp(-distance / (4.0 * time))
            for part, values in zip(pixel_pairs(total, (down, right)), (there, here), strict=True):
                part.addcmul_(k, values)
            for part in pixel_pairs(weight, (down, right)):
                part += k
    return total / weight
