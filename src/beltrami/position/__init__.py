"""Positional encodings: coordinates of the nodes computed from the graph alone."""

from beltrami.position.base import Encoding, Progress
from beltrami.position.deepwalk import DeepWalk
from beltrami.position.diffusion_kernel import PPR, Heat
from beltrami.position.embedding import Hyperbolic
from beltrami.position.spectral import LaplacianEigenvectors
from beltrami.position.walk import ReturnProbabilities, Walker

__all__ = ["Encoding", "Progress", "Walker"]
__all__ += ["PPR", "Heat", "LaplacianEigenvectors", "ReturnProbabilities", "DeepWalk", "Hyperbolic"]
