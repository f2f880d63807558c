"""Graphs: edges, calculus on them, and the normalisation of edge weights."""

from beltrami.graph.calculus import divergence, gradient, laplacian
from beltrami.graph.edges import Edges
from beltrami.graph.matrix import Sparse
from beltrami.graph.normalise import Both, Columns, Link, Normaliser, Rows, softmax, squareplus
from beltrami.graph.ops import aggregate, collect, edge_dot, spread

__all__ = [
    "Edges",
    "Sparse",
    "gradient",
    "divergence",
    "laplacian",
    "aggregate",
    "edge_dot",
    "spread",
    "collect",
    "Normaliser",
    "Rows",
    "Columns",
    "Both",
    "Link",
    "softmax",
    "squareplus",
]
