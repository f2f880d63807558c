"""Positions of nodes from the graph alone."""

from beltrami.position.base import Encoding, Progress
from beltrami.position.deepwalk import DeepWalk
from beltrami.position.heat import Heat
from beltrami.position.hyperbolic import Hyperbolic
from beltrami.position.ppr import PPR
from beltrami.position.return_probability import ReturnProbabilities
from beltrami.position.spectral import LaplacianEigenvectors
from beltrami.position.walk import Walker

__all__ = [
    "Encoding",
    "Progress",
    "PPR",
    "Heat",
    "LaplacianEigenvectors",
    "ReturnProbabilities",
    "DeepWalk",
    "Hyperbolic",
    "Walker",
]
