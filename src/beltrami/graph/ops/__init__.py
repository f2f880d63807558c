"""Sparse products, attention and recurrences on a graph; :func:`use` selects the backend that computes them."""

from beltrami.graph.ops.dispatch import use
from beltrami.graph.ops.products import aggregate, collect, edge_dot, largest, spread

__all__ = ["use", "aggregate", "edge_dot", "spread", "collect", "largest"]
