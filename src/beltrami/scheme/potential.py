"""A vector field that goes down an energy."""

from abc import ABC, abstractmethod

from torch import Tensor


class Potential(ABC):
    r"""A field along whose flow an energy never grows, such as a gradient flow :math:`f(y) = - M^{-1} \nabla E(y)`.

    What has this face can be stepped by ``EnergyDecreasing``; it is a vector field as well.
    """

    @abstractmethod
    def energy(self, y: Tensor) -> Tensor:
        """E(y), a scalar."""

    @abstractmethod
    def __call__(self, t: float, y: Tensor) -> Tensor:
        """f(y)."""
