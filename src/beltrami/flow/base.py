"""The interfaces of a flow, the equation, and of its vector field on a graph."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from torch import Tensor

from beltrami.diffusivity import EdgeWeights
from beltrami.diffusivity.base import PrintedModule
from beltrami.graph import Edges


class VectorField(ABC):
    """The right-hand side f(t, z) of dz/dt = f, bound to a graph and an initial state.

    Adjoints differentiate by z and by ``tensors``: parameters, and tensors computed when f was bound.
    """

    tensors: tuple[Tensor, ...]

    @abstractmethod
    def __call__(self, t: float, z: Tensor) -> Tensor:
        """Return f(t, z), (n, d) -> (n, d)."""


class FunctionField(VectorField):
    """A vector field given by a function ``f(t, z)`` and the tensors that it depends on."""

    def __init__(self, f: Callable[[float, Tensor], Tensor], tensors: tuple[Tensor, ...]) -> None:
        self.f, self.tensors = f, tensors

    def __call__(self, t: float, z: Tensor) -> Tensor:
        return self.f(t, z)


class Flow(PrintedModule, ABC):
    """A learnable diffusion equation with its diffusivity."""

    def __init__(self, diffusivity: EdgeWeights) -> None:
        super().__init__()
        self.diffusivity = diffusivity

    @abstractmethod
    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> VectorField:
        """Return the vector field from the state ``z`` (n, d) on ``edges``; ``start`` is z(0), by default ``z``."""
