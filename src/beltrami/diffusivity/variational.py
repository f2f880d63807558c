"""Weights that come from an energy."""

from abc import abstractmethod

from torch import Tensor

from beltrami.diffusivity.base import EdgeWeights
from beltrami.graph import Edges


class Variational(EdgeWeights):
    r"""Weights whose flow goes down an energy.

    .. math:: \sum_j a_{ij}(Z) (z_j - z_i) = - \frac{\partial E(Z)}{\partial z_i}

    They are symmetric but sum to nothing in particular: normalised, their flow would be the gradient of nothing.
    """

    @abstractmethod
    def energy(self, z: Tensor, edges: Edges) -> Tensor:
        """E at the state ``z`` (n, d), a scalar, differentiable by ``z`` and everything that learns."""
