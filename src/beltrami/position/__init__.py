"""Positions of nodes from the graph alone."""

from beltrami.position.base import Encoding
from beltrami.position.ppr import PPR
from beltrami.position.spectral import LaplacianEigenvectors

__all__ = ["Encoding", "PPR", "LaplacianEigenvectors"]
