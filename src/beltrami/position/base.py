"""Encoding: positions of the nodes, from the graph alone."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from beltrami.graph import Edges


class Encoding(ABC):
    """Positional coordinates of every node.

    Shapes:
        ``edges`` over n nodes -> (n, d'), dense or sparse.
    """

    @abstractmethod
    def __call__(self, edges: Edges, generator: torch.Generator | None = None) -> Tensor:
        """Encode; ``generator`` is the one source of randomness, for encodings that have any."""
