"""The hot operations on a graph, with their derivatives."""

from beltrami.graph.ops.products import aggregate, collect, edge_dot, largest, spread

__all__ = ["aggregate", "edge_dot", "spread", "collect", "largest"]
