"""The interface of a stencil: which edges the flow is discretised on."""

from abc import ABC, abstractmethod
from weakref import WeakKeyDictionary

from torch import Tensor

from beltrami.graph import Edges


class Stencil(ABC):
    """The graph of the flow, E' of eq. (7), from the state and the input graph.

    Stencils are frozen dataclasses: ``print`` shows their settings, and equal settings compare equal.
    """

    @property
    def synchronises(self) -> bool:
        """Whether the edges depend on the state, so that a call waits for the device."""
        return True

    @abstractmethod
    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        """Return the graph to diffuse on, from the state ``z`` (n, d) and the input graph."""


class Fixed(Stencil):
    """A stencil of the input graph alone; equal stencils share a cached result as long as the input graph exists."""

    @property
    def synchronises(self) -> bool:
        return False

    @abstractmethod
    def rewire(self, edges: Edges) -> Edges:
        """Return the graph to diffuse on, from the input graph."""

    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        cache = _REWIRED.setdefault(edges, {})
        if self not in cache:
            rewired = self.rewire(edges)
            cache[self] = None if rewired is edges else rewired  # a value that is its own weak key is never freed
        return cache[self] or edges


_REWIRED: WeakKeyDictionary[Edges, dict[Fixed, Edges | None]] = WeakKeyDictionary()
