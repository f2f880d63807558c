"""Graphs: edges, calculus on them, and the normalisation of edge weights."""

from beltrami.graph.calculus import divergence, gradient, laplacian
from beltrami.graph.edges import Edges
from beltrami.graph.matrix import Sparse
from beltrami.graph.normalise import Both, Columns, Link, Normaliser, Rows, softmax, squareplus
from beltrami.graph.ops import aggregate, collect, edge_dot, spread
from beltrami.graph.ops.attention import Leaky, Pair, attend, exponential, identity, squared_distance

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
    "Pair",
    "attend",
    "identity",
    "exponential",
    "Leaky",
    "squared_distance",
]
