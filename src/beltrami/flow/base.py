"""Flow: the equation. Bound to an initial state and a graph, it is a vector field."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from beltrami.diffusivity import EdgeWeights
from beltrami.graph import Edges


class VectorField(ABC):
    """The right-hand side f(t, z) of dz/dt = f, with everything it depends on bound to it."""

    @property
    @abstractmethod
    def tensors(self) -> tuple[Tensor, ...]:
        """What f is differentiated by besides z: parameters, and tensors computed when it was bound.

        An adjoint that does not record f sends its gradients here.
        """

    @abstractmethod
    def __call__(self, t: float, z: Tensor) -> Tensor:
        """(n, d) -> (n, d)."""


class Flow(nn.Module, ABC):
    """A learnable diffusion equation, driven by its diffusivity."""

    def __init__(self, diffusivity: EdgeWeights) -> None:
        super().__init__()
        self.diffusivity = diffusivity

    @abstractmethod
    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> VectorField:
        """The vector field of this flow from the state ``z`` (n, d) on ``edges``.

        ``start`` is z(0), where ``z`` is the beginning of a later segment; the two are the same by default.
        """
