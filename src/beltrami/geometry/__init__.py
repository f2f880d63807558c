"""Metric spaces in which node positions lie: Euclidean space and the Poincaré ball."""

from beltrami.geometry.metric import Euclidean, Metric
from beltrami.geometry.poincare import PoincareBall

__all__ = ["Metric", "Euclidean", "PoincareBall"]
