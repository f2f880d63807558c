"""Stencil: which edges the flow is discretised on."""

from abc import ABC, abstractmethod

from torch import Tensor

from beltrami.graph import Edges


class Stencil(ABC):
    """The graph of the flow, E' of eq. (7): from the state and the input graph, new edges."""

    @property
    def waits(self) -> bool:
        """Whether its edges depend on the state, so that it waits for the device each time it is asked."""
        return True

    @abstractmethod
    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        """``z`` (n, d) and the input graph -> the graph to diffuse on."""


class Fixed(Stencil):
    """A stencil that does not look at the state: the same graph comes again every epoch, so its rewiring is kept."""

    def __init__(self) -> None:
        self._last: tuple[Edges, Edges] | None = None

    @property
    def waits(self) -> bool:
        return False

    @abstractmethod
    def rewire(self, edges: Edges) -> Edges:
        """The input graph -> the graph to diffuse on."""

    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        if self._last is None or self._last[0] is not edges:
            self._last = (edges, self.rewire(edges))
        return self._last[1]
