"""Metric: how far apart positions are, and how one moves among them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor


class Metric(ABC):
    r"""A Riemannian metric in one chart: points and tangent vectors are both rows of ``channels`` numbers.

    Points are taken to be :meth:`inside` the chart; what may have left it goes through :meth:`project` first.

    Shapes:
        ``p``, ``q``, ``v`` (..., d), broadcasting over the leading dimensions.
    """

    @abstractmethod
    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        """Length of the geodesic from p to q, (..., d), (..., d) -> (...); the gradient where p = q is zero."""

    @abstractmethod
    def pairwise(self, p: Tensor, q: Tensor) -> Tensor:
        """Distances of all pairs, (a, d), (b, d) -> (a, b), without anything of size (a, b, d): a block of a kNN."""

    @abstractmethod
    def exp(self, p: Tensor, v: Tensor) -> Tensor:
        """Where the geodesic that leaves p with velocity v is at time one; -> (..., d)."""

    @abstractmethod
    def log(self, p: Tensor, q: Tensor) -> Tensor:
        """The velocity at p of the geodesic that reaches q at time one, the inverse of :meth:`exp`; -> (..., d)."""

    @abstractmethod
    def norm(self, p: Tensor, v: Tensor) -> Tensor:
        """Length of the tangent vector v at p; -> (...)."""

    @abstractmethod
    def riemannian(self, p: Tensor, gradient: Tensor) -> Tensor:
        """The Riemannian gradient at p, from that by coordinates: the inverse metric applied to it; -> (..., d)."""

    @abstractmethod
    def project(self, p: Tensor) -> Tensor:
        """The nearest point on which floating point can work; itself where that is so already; -> (..., d)."""

    @abstractmethod
    def inside(self, p: Tensor) -> Tensor:
        """Whether each is a point of the space at all; -> booleans (...)."""

    def retract(self, p: Tensor, v: Tensor) -> Tensor:
        """p + v, projected: agrees with :meth:`exp` to first order in v, at a fraction of its cost; -> (..., d)."""
        check_widths(p, v)
        return self.project(p + v)


@dataclass(frozen=True)
class Euclidean(Metric):
    r"""The flat metric, :math:`d(p, q) = \|p - q\|`: every map is the obvious one.

    ``pairwise`` multiplies matrices once the points are centred: five times quicker than differences, and good to
    :math:`\sqrt\varepsilon` of the spread of the points, where :meth:`distance` is good to :math:`\varepsilon`.
    """

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        check_widths(p, q)
        apart: Tensor = torch.linalg.vector_norm(p - q, dim=-1)
        return apart

    def pairwise(self, p: Tensor, q: Tensor) -> Tensor:
        check_widths(p, q)
        centre = q.mean(0).detach()
        return torch.cdist(p - centre, q - centre, compute_mode="use_mm_for_euclid_dist")

    def exp(self, p: Tensor, v: Tensor) -> Tensor:
        check_widths(p, v)
        return p + v

    def log(self, p: Tensor, q: Tensor) -> Tensor:
        check_widths(p, q)
        return q - p

    def norm(self, p: Tensor, v: Tensor) -> Tensor:
        check_widths(p, v)
        length: Tensor = torch.linalg.vector_norm(v, dim=-1)
        return length.expand(torch.broadcast_shapes(p.shape, v.shape)[:-1])

    def riemannian(self, p: Tensor, gradient: Tensor) -> Tensor:
        check_widths(p, gradient)
        return gradient

    def project(self, p: Tensor) -> Tensor:
        return p

    def inside(self, p: Tensor) -> Tensor:
        return torch.isfinite(p).all(-1)


def check_widths(p: Tensor, q: Tensor) -> None:
    """Refuse rows of two widths, which would broadcast where one of them is 1."""
    if p.shape[-1] != q.shape[-1]:
        raise ValueError(f"points must have as many channels; got {p.shape[-1]} and {q.shape[-1]}.")
