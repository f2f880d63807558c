"""Partitions of the nodes of a graph into parts of about equal size with few edges between them."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor

from beltrami.arguments import Count, checked
from beltrami.data.array_file import open_array
from beltrami.errors import DataError
from beltrami.graph import Edges

PARTS = 8  # by default
SEED = 0  # of METIS, so that the same graph has the same parts


@checked
def partition_nodes(edges: Edges, parts: Count = PARTS) -> Tensor:
    """Return the part of each node, (n,) from 0; by METIS if pymetis is installed, else by :func:`greedy_partition`.

    There are at most n parts, and none is empty. METIS balances parts to 3%.
    """
    parts = min(parts, edges.num_nodes)
    if parts > 1 and find_spec("pymetis") is not None:
        found = _metis(edges, parts)
        if len(found.unique()) == parts:  # it may leave parts empty that have a few nodes only
            return found
    return greedy_partition(edges, parts)


@checked
def greedy_partition(edges: Edges, parts: Count) -> Tensor:
    r"""Return a partition by linear deterministic greedy streaming (Stanton and Kliot 2012), (n,).

    Nodes arrive in the order of reverse Cuthill and McKee, and each goes to the part

    .. math:: \mathrm{argmax}_p \; |N(i) \cap P_p| \left(1 - |P_p| / C_p\right),

    if several are equal, to the one with most room, then to the first. The capacities :math:`C_p` differ by at most one
    and add up to n: parts have exactly these sizes.
    """
    graph = _adjacency(edges)
    capacity = np.full(parts, edges.num_nodes // parts)
    capacity[: edges.num_nodes % parts] += 1
    part, size = np.full(edges.num_nodes, -1), np.zeros(parts, dtype=np.int64)
    for node in reverse_cuthill_mckee(graph, symmetric_mode=True):
        near = part[graph.indices[graph.indptr[node] : graph.indptr[node + 1]]]
        room = 1.0 - size / np.maximum(capacity, 1)
        score = np.bincount(near[near >= 0], minlength=parts) * room
        score[size >= capacity] = -1.0
        best = score == score.max()
        part[node] = np.flatnonzero(best)[room[best].argmax()]
        size[part[node]] += 1
    return torch.from_numpy(part).to(edges.device)


@checked
def read_partition(path: Path, *, num_nodes: int) -> Tensor:
    """Return the partition in an array file, the part of each node from 0, (n,) integers; one that does not cover the
    nodes is refused."""
    found = open_array(path)
    if found.dtype.kind not in "iu" or found.ndim != 1:
        raise DataError(
            f"the file of parts {path} must hold one array (n,) of integers, the part of each node; it holds "
            f"{found.dtype} of shape {found.shape}."
        )
    part = torch.from_numpy(found.astype(np.int64))
    check_partition(part, num_nodes=num_nodes)
    return part


def check_partition(part: Tensor, *, num_nodes: int) -> None:
    """Refuse parts that do not cover the nodes, or that leave a part empty."""
    if part.shape != (num_nodes,):
        raise ValueError(f"the parts cover {len(part)} nodes where the graph has {num_nodes}: give one part per node.")
    if len(part) and int(part.min()) < 0:
        node = int((part < 0).nonzero()[0])
        raise ValueError(f"the parts do not cover node {node}, whose part is {int(part[node])}: parts start at 0.")
    counts = torch.bincount(part) if int(part.max()) < num_nodes else torch.zeros(1)
    if not bool((counts > 0).all()):
        raise ValueError("a part has no nodes: number the parts from 0, without gaps.")


def _metis(edges: Edges, parts: int) -> Tensor:
    import pymetis

    graph = _adjacency(edges)
    adjacency = pymetis.CSRAdjacency(graph.indptr, graph.indices)
    _, part = pymetis.part_graph(parts, adjacency, options=pymetis.Options(seed=SEED), recursive=False)
    return torch.tensor(part, dtype=torch.int64, device=edges.device)


def _adjacency(edges: Edges) -> csr_array:
    """Return the graph without directions, weights and loops."""
    i, j = edges.i.cpu().numpy(), edges.j.cpu().numpy()
    other = i != j
    ones, n = np.ones(int(other.sum()), dtype=np.int8), edges.num_nodes
    graph = csr_array((ones, (i[other], j[other])), shape=(n, n))
    graph = csr_array((graph + graph.T) > 0)
    graph.indices, graph.indptr = graph.indices.astype(np.int32), graph.indptr.astype(np.int32)
    return graph
