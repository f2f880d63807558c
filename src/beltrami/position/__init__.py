"""Positional encodings: coordinates of the nodes computed from the graph alone."""

from beltrami.position.base import Encoding, Progress
from beltrami.position.deepwalk import DeepWalk
from beltrami.position.embedding import Hyperbolic
from beltrami.position.spectral import PPR, Heat, LaplacianEigenvectors
from beltrami.position.walk import ReturnProbabilities

__all__ = ["Encoding", "Progress"]
__all__ += ["PPR", "Heat", "LaplacianEigenvectors", "ReturnProbabilities", "DeepWalk", "Hyperbolic"]
