"""Stencils that connect each node to the nodes near it: k nearest neighbours, and all within a radius."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from importlib import import_module

import torch
from torch import Tensor

from beltrami.arguments import checked
from beltrami.errors import check_matrix
from beltrami.geometry import Euclidean, Metric
from beltrami.graph import Edges
from beltrami.graph.row_chunks import largest_per_row
from beltrami.stencil.base import Stencil

BLOCK = 2**24  # distances computed at a time: 64 MiB in single precision
EXTRA = 8  # candidates considered beyond k
FAISS_LINKS, FAISS_SEARCH = 32, 128  # HNSW's links of a node, and candidates held during a search


@checked
@dataclass(frozen=True)
class KNN(Stencil):
    r"""The ``k`` nearest nodes of every node: edges j -> i for the k smallest :math:`d(z_i, z_j)`, :math:`j \ne i`.

    Exact: blocks of rows are searched with the metric's ``pairwise``; candidates that its rounding error could have
    confused are compared again by ``distance``; of equal distances the lowest nodes are taken. Time O(n^2), memory
    O(n k + block n). ``Chain(KNN(k), Symmetric())`` adds the reverse edges. No gradient passes through the choice.

    ``on`` are the channels in which ``metric`` measures distances, such as ``joint.u``; None for all of z.
    ``approximate`` searches with faiss (``beltrami[approximate]``) by hierarchical navigable small worlds (HNSW) in
    time O(n log n), and misses a few neighbours in a thousand; Euclidean only; deterministic.
    """

    k: int
    _: KW_ONLY
    on: slice | None = None
    metric: Metric = field(default_factory=Euclidean)
    approximate: bool = False

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"KNN needs `k` at least 1; got {self.k}. For no edges, use `Isolated()`.")
        if self.approximate and not isinstance(self.metric, Euclidean):
            raise ValueError(f"KNN can be approximate in Euclidean space only; got {self.metric}.")

    @checked
    @torch.no_grad()
    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        (p, metric, _), n = _points(self, z, edges), edges.num_nodes
        if self.k >= n:
            raise ValueError(f"KNN needs `k` below the number of nodes; got k={self.k}, {n} nodes. Use `Complete()`?")
        nodes = torch.arange(n, device=p.device)
        i, j, nodes = _search_with_faiss(p, self.k) if self.approximate else (nodes[:0], nodes[:0], nodes)
        return _as_edges([(i, j), *(self._nearest(p, rows, metric) for rows in _blocks(nodes, p))], n)

    def _nearest(self, p: Tensor, rows: Tensor, metric: Metric) -> tuple[Tensor, Tensor]:
        distance, error = _rounded_distances(p, rows, metric)
        near, sender = distance.topk(min(self.k + EXTRA, len(p) - 1), largest=False)
        # Both the k-th distance and any that should come before it may be wrong by the error.
        limit = (near[:, self.k - 1].square() + 2 * error).sqrt()
        more = (near[:, -1] <= limit) & (near.shape[1] < len(p) - 1)  # rows with further candidates
        i, place = (~more)[:, None].expand_as(near).nonzero().T
        more_i, more_j = ((distance <= limit[:, None]) & more[:, None]).nonzero().T if more.any() else (i[:0], i[:0])
        row, j = torch.cat((i, more_i)), torch.cat((sender[i, place], more_j))
        in_order = (row * len(p) + j).argsort()
        row, j = row[in_order], j[in_order]
        kept = largest_per_row(row, -_exact_distances(p, rows[row], j, metric), top=self.k)
        return rows[row[kept]], j[kept]


@checked
@dataclass(frozen=True)
class Radius(Stencil):
    r"""All nodes within ``r`` of every node: edges j -> i where :math:`d(z_i, z_j) \le r`, :math:`j \ne i`.

    The degree follows the density of the points, and distant nodes get no edge. Exact and computed in blocks, as
    :class:`KNN`, whose ``on`` and ``metric`` it has; memory O(edges + block n).
    """

    r: float
    _: KW_ONLY
    on: slice | None = None
    metric: Metric = field(default_factory=Euclidean)

    def __post_init__(self) -> None:
        if not 0 < self.r < float("inf"):
            raise ValueError(f"Radius needs a positive, finite `r`; got {self.r}.")

    @checked
    @torch.no_grad()
    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        p, metric, factor = _points(self, z, edges)
        r, nodes = self.r * factor, torch.arange(len(p), device=p.device)
        return _as_edges([self._within(p, rows, metric, r) for rows in _blocks(nodes, p)], edges.num_nodes)

    def _within(self, p: Tensor, rows: Tensor, metric: Metric, r: float) -> tuple[Tensor, Tensor]:
        rounded, error = _rounded_distances(p, rows, metric)
        row, j = (rounded <= (error + r * r).sqrt()).nonzero().T
        distance = _exact_distances(p, rows[row], j, metric)
        within = distance <= r
        return rows[row[within]], j[within]


def _points(stencil: KNN | Radius, z: Tensor, edges: Edges) -> tuple[Tensor, Metric, float]:
    """Return the points, the metric and the factor of distances of :meth:`Metric.rescaled`."""
    name = type(stencil).__name__
    check_matrix(z, name="z", rows=edges.num_nodes)
    p = z if stencil.on is None else z[:, stencil.on]
    if p.shape[1] == 0:
        raise ValueError(f"{name} needs channels to measure in; `on` ({stencil.on}) leaves none of {z.shape[1]}.")
    p, metric, factor = stencil.metric.rescaled(p)
    if not bool(metric.inside(p).all()):
        raise ValueError(f"{name} needs points inside the space of {stencil.metric}; put them there with `project`.")
    return p.contiguous(), metric, factor


def _blocks(nodes: Tensor, p: Tensor) -> Iterator[Tensor]:
    yield from nodes.split(max(1, BLOCK // len(p))) if len(nodes) else ()


def _rounded_distances(p: Tensor, rows: Tensor, metric: Metric) -> tuple[Tensor, Tensor]:
    """Return rounded distances (b, n), infinite on the diagonal, and a bound on the error of their squares.

    Rounding in |p|^2 + |q|^2 - 2 <p, q> is at most (d + 2) eps / 2 times (|p| + |q|)^2; about the centre of the points,
    |p| is at most the largest distance and |q| at most twice that.
    """
    distance = metric.pairwise(p[rows], p)
    error = 5 * (p.shape[1] + 4) * torch.finfo(p.dtype).eps * distance.max().square()
    distance[torch.arange(len(rows), device=p.device), rows] = torch.inf
    return distance, error


def _exact_distances(p: Tensor, i: Tensor, j: Tensor, metric: Metric) -> Tensor:
    """Return the distance of each pair from its difference, in chunks. The squares of pairs much closer than the points
    as a whole may underflow: these are computed in double precision."""
    chunk = max(1, BLOCK // p.shape[1])
    parts = [metric.distance(p[a], p[b]) for a, b in zip(i.split(chunk), j.split(chunk), strict=True)]
    distance = torch.cat(parts)
    close = (distance < torch.finfo(p.dtype).tiny ** 0.4).nonzero()[:, 0]
    for some in close.split(chunk) if p.dtype == torch.float32 else ():
        distance[some] = metric.distance(p[i[some]].double(), p[j[some]].double()).to(p.dtype)
    return distance


def _as_edges(parts: list[tuple[Tensor, Tensor]], num_nodes: int) -> Edges:
    i, j = (torch.cat(ends) for ends in zip(*parts, strict=True))
    return Edges.build(torch.stack((j, i)), num_nodes=num_nodes)


def _search_with_faiss(p: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return pairs i, j with k neighbours for each node, and the nodes for which faiss found fewer."""
    try:
        faiss = import_module("faiss")
    except ImportError:
        raise ValueError(
            "KNN(approximate=True) needs faiss: install `beltrami[approximate]`, or leave it out."
        ) from None
    points = p.float().cpu().numpy()
    index = faiss.IndexHNSWFlat(p.shape[1], FAISS_LINKS)
    index.hnsw.efSearch = max(FAISS_SEARCH, 2 * k)
    faiss.omp_set_num_threads(1)  # built by several threads, the hierarchy is not deterministic
    index.add(points)
    faiss.omp_set_num_threads(torch.get_num_threads())
    j = torch.from_numpy(index.search(points, k + 1)[1]).to(p.device)
    i = torch.arange(len(p), device=p.device)[:, None].expand_as(j)
    found = (j != i) & (j >= 0)  # a node need not come first among equal points; missing results are -1
    found &= found.cumsum(1) <= k
    enough = found.sum(1) == k
    found &= enough[:, None]
    return i[found], j[found], (~enough).nonzero()[:, 0]
