"""The graph of a flow as pairs of nodes with the weights of both directions."""

import numpy
from numpy.typing import NDArray

from beltrami.graph import Edges
from beltrami.report.run_data import Floats, Integers, Mesh

MOST_PAIRS = 500_000  # of all segments together


def mesh_of(edges: Edges, weights: Floats, *, start: float, stop: float) -> Mesh:
    """Return the pairs of neighbours, the strongest first, from weights (m, 2) of each edge at both times.

    The weights of parallel edges are added. The strength of a pair is its largest absolute weight.
    """
    j, i = (each.cpu().numpy() for each in (edges.j, edges.i))
    other = i != j
    j, i, weights = j[other], i[other], weights[other]
    low, high = numpy.minimum(i, j), numpy.maximum(i, j)
    keys, place = numpy.unique(low.astype(numpy.int64) * edges.num_nodes + high, return_inverse=True)
    found = numpy.zeros((len(keys), 2, 2), dtype=weights.dtype)
    numpy.add.at(found, (place, (i != low).astype(numpy.int64)), weights)  # side 0: the lower node receives
    order = numpy.argsort(-numpy.abs(found).max((1, 2), initial=0.0), kind="stable")
    pairs = numpy.stack((keys // edges.num_nodes, keys % edges.num_nodes), axis=1).astype(numpy.int32)
    return Mesh(start, stop, pairs[order], found[order])


def on_nodes(mesh: Mesh, nodes: Integers, num_nodes: int) -> Mesh:
    """Return the pairs whose nodes are both among ``nodes``, ascending, and count the nodes as these do."""
    place: NDArray[numpy.int32] = numpy.full(num_nodes, -1, dtype=numpy.int32)
    place[nodes] = numpy.arange(len(nodes), dtype=numpy.int32)
    pairs = place[mesh.pairs]
    kept = (pairs >= 0).all(1)
    return Mesh(mesh.start, mesh.stop, pairs[kept], mesh.weights[kept])


def strongest(mesh: Mesh, count: int) -> Mesh:
    """Return the mesh of the ``count`` strongest pairs."""
    return Mesh(mesh.start, mesh.stop, mesh.pairs[:count], mesh.weights[:count])
