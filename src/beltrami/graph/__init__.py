"""Graphs: edges, sparse products and calculus on them, and the normalisation of edge weights."""

from beltrami.graph.calculus import divergence, gradient, laplacian
from beltrami.graph.edge_values import as_edges, follow_features
from beltrami.graph.edges import Edges
from beltrami.graph.normalise import Both, Columns, Link, Normaliser, Rows, softmax_link, squareplus_link
from beltrami.graph.ops.attention import Leaky, PairScore, attend, exponential, identity, squared_distance
from beltrami.graph.ops.products import aggregate, collect, edge_dot, spread
from beltrami.graph.sparse_matrix import SparseMatrix

__all__ = [
    "Edges", "SparseMatrix", "as_edges", "follow_features",
    "gradient", "divergence", "laplacian",
    "aggregate", "edge_dot", "spread", "collect",
    "Normaliser", "Rows", "Columns", "Both", "Link", "softmax_link", "squareplus_link",
    "PairScore", "attend", "identity", "exponential", "Leaky", "squared_distance",
]  # fmt: skip
