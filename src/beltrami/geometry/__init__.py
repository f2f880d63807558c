"""Geometry: the spaces that positions live in."""

from beltrami.geometry.metric import Euclidean, Metric
from beltrami.geometry.poincare import PoincareBall

__all__ = ["Metric", "Euclidean", "PoincareBall"]
