"""Stencil: which edges the flow is discretised on."""

from abc import ABC, abstractmethod

from torch import Tensor

from beltrami.graph import Edges


class Stencil(ABC):
    """The graph of the flow, E' of eq. (7): from the state and the input graph, new edges."""

    @abstractmethod
    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        """``z`` (n, d) and the input graph -> the graph to diffuse on."""
