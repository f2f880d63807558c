"""Nearest neighbours: the graph of a point cloud."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from beltrami.errors import check_matrix
from beltrami.geometry import Euclidean, Metric
from beltrami.graph import Edges
from beltrami.graph.row_chunks import largest_per_row
from beltrami.stencil.base import Stencil

CELLS = 2**24  # distances held at a time: 64 MiB in single precision
SPARE = 8  # neighbours looked at beyond k
LINKS, BEAM = 32, 128  # of faiss: links of a node in the hierarchy, nodes kept in sight while searching


class KNN(Stencil):
    r"""The ``k`` nearest nodes of every node: edges j -> i for the k smallest :math:`d(z_i, z_j)`, :math:`j \ne i`.

    Exact. Blocks of rows are searched with the metric's ``pairwise``, quick and rounded; whatever rounding could have
    mistaken is measured again by ``distance``, and of equal distances the lowest nodes are taken. Time O(n^2), memory
    O(n k + block n). Being near is not mutual; ``Chain(KNN(k), Symmetric())`` makes it so. No gradient passes
    through the choice.

    Args:
        k: edges that enter each node.
        on: the channels distances are taken in, such as ``joint.u`` or ``joint.x``; None for all of z.
        metric: of those channels; None is Euclidean.
        approximate: search with faiss (``beltrami[approximate]``), along a hierarchy of small worlds (HNSW): time
            O(n log n), and a few neighbours in a thousand are missed. Euclidean only. The same every time.

    Shapes:
        ``z`` (n, d) -> n k edges.
    """

    def __init__(
        self, k: int, *, on: slice | None = None, metric: Metric | None = None, approximate: bool = False
    ) -> None:
        if k < 1:
            raise ValueError(f"KNN needs `k` at least 1; got {k}. For no edges, use `Isolated()`.")
        self.k, self.on, self.approximate = k, on, approximate
        self.metric = Euclidean() if metric is None else metric
        if approximate and not isinstance(self.metric, Euclidean):
            raise ValueError(f"KNN can be approximate in Euclidean space only; got {self.metric}.")

    @torch.no_grad()
    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        p, n = _points(self, z, edges), edges.num_nodes
        if self.k >= n:
            raise ValueError(f"KNN needs `k` below the number of nodes; got k={self.k}, {n} nodes. Use `Complete()`?")
        nodes = torch.arange(n, device=p.device)
        i, j, nodes = _search_with_faiss(p, self.k) if self.approximate else (nodes[:0], nodes[:0], nodes)
        i, j = _joined([(i, j), *(self._nearest(p, rows) for rows in _blocks(nodes, p))])
        return Edges.build(torch.stack((j, i)), num_nodes=n)

    def _nearest(self, p: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        found, error = _distances(p, rows, self.metric)
        near, sender = found.topk(min(self.k + SPARE, len(p) - 1), largest=False)
        # Both the k-th distance and any that should come before it may be off by the error.
        reach = (near[:, self.k - 1].square() + 2 * error).sqrt()
        crowded = (near[:, -1] <= reach) & (near.shape[1] < len(p) - 1)
        i, place = (~crowded)[:, None].expand_as(near).nonzero().T
        more_i, more_j = ((found <= reach[:, None]) & crowded[:, None]).nonzero().T if crowded.any() else (i[:0], i[:0])
        row, j = torch.cat((i, more_i)), torch.cat((sender[i, place], more_j))
        in_order = (row * len(p) + j).argsort()
        row, j = row[in_order], j[in_order]
        kept = largest_per_row(row, -_measured(p, rows[row], j, self.metric), top=self.k)
        return rows[row[kept]], j[kept]


class Radius(Stencil):
    r"""All nodes within ``r`` of every node: edges j -> i where :math:`d(z_i, z_j) \le r`, :math:`j \ne i`.

    The degree follows the density, where :class:`KNN` gives every node the same; far nodes get no edge. In both
    directions, unless there is a limit. Exact, in blocks, as :class:`KNN` is; memory O(edges + block n).

    Args:
        r: the distance.
        on: the channels distances are taken in; None for all of z.
        metric: of those channels; None is Euclidean.
        limit: edges that may enter one node: the nearest, and of equal ones the lowest nodes. None for no limit.
        approximate: search the ``limit`` nearest with faiss, as :class:`KNN` does, and keep those within ``r``.

    Shapes:
        ``z`` (n, d) -> any number of edges.
    """

    def __init__(
        self,
        r: float,
        *,
        on: slice | None = None,
        metric: Metric | None = None,
        limit: int | None = None,
        approximate: bool = False,
    ) -> None:
        if not 0 < r < float("inf"):
            raise ValueError(f"Radius needs a positive, finite `r`; got {r}.")
        if limit is not None and limit < 1:
            raise ValueError(f"Radius needs `limit` at least 1, or None for none; got {limit}.")
        self.r, self.on, self.limit, self.approximate = r, on, limit, approximate
        self.metric = Euclidean() if metric is None else metric
        if approximate and (limit is None or not isinstance(self.metric, Euclidean)):
            raise ValueError("Radius can be approximate with a `limit` and in Euclidean space only: set the one.")

    @torch.no_grad()
    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        p = _points(self, z, edges)
        if self.approximate and self.limit is not None and len(p) > 1:
            near = KNN(min(self.limit, len(p) - 1), on=self.on, approximate=True)(z, edges)
            within = _measured(p, near.i, near.j, self.metric) <= self.r
            return Edges.build(near.edge_index[:, within], num_nodes=edges.num_nodes)
        i, j = _joined([self._within(p, rows) for rows in _blocks(torch.arange(len(p), device=p.device), p)])
        return Edges.build(torch.stack((j, i)), num_nodes=edges.num_nodes)

    def _within(self, p: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        found, error = _distances(p, rows, self.metric)
        row, j = (found <= (self.r**2 + error).sqrt()).nonzero().T
        distance = _measured(p, rows[row], j, self.metric)
        within = distance <= self.r
        row, j, distance = row[within], j[within], distance[within]
        if self.limit is not None:
            kept = largest_per_row(row, -distance, top=self.limit)
            row, j = row[kept], j[kept]
        return rows[row], j


def _points(stencil: KNN | Radius, z: Tensor, edges: Edges) -> Tensor:
    name = type(stencil).__name__
    check_matrix(z, name="z", rows=edges.num_nodes)
    p = z if stencil.on is None else z[:, stencil.on]
    if p.shape[1] == 0:
        raise ValueError(f"{name} needs channels to measure in; `on` ({stencil.on}) leaves none of {z.shape[1]}.")
    if not bool(stencil.metric.inside(p).all()):
        raise ValueError(f"{name} needs points inside the space of {stencil.metric}; put them there with `project`.")
    return p.contiguous()


def _blocks(nodes: Tensor, p: Tensor) -> Iterator[Tensor]:
    yield from nodes.split(max(1, CELLS // len(p))) if len(nodes) else ()


def _distances(p: Tensor, rows: Tensor, metric: Metric) -> tuple[Tensor, Tensor]:
    """Rounded distances (b, n), infinite to oneself, and a bound on the error of their squares.

    Rounding in |p|^2 + |q|^2 - 2 <p, q> is at most (d + 2) eps / 2 times (|p| + |q|)^2; about the centre of the points,
    |p| is at most the largest distance and |q| at most twice that.
    """
    found = metric.pairwise(p[rows], p)
    error = 5 * (p.shape[1] + 4) * torch.finfo(p.dtype).eps * found.max().square()
    found[torch.arange(len(rows), device=p.device), rows] = torch.inf
    return found, error


def _measured(p: Tensor, i: Tensor, j: Tensor, metric: Metric) -> Tensor:
    """The distance of each pair by itself, in pieces."""
    most = max(1, CELLS // p.shape[1])
    return torch.cat([metric.distance(p[a], p[b]) for a, b in zip(i.split(most), j.split(most), strict=True)])


def _joined(parts: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    return torch.cat([i for i, _ in parts]), torch.cat([j for _, j in parts])


def _search_with_faiss(p: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Pairs i, j of nodes with k neighbours each; and the nodes for which fewer were found."""
    faiss = _faiss()
    points = p.float().cpu().numpy()
    index = faiss.IndexHNSWFlat(p.shape[1], LINKS)
    index.hnsw.efSearch = max(BEAM, 2 * k)
    faiss.omp_set_num_threads(1)  # built by several threads, the hierarchy would differ from time to time
    index.add(points)
    faiss.omp_set_num_threads(torch.get_num_threads())
    j = torch.from_numpy(index.search(points, k + 1)[1]).to(p.device)
    i = torch.arange(len(p), device=p.device)[:, None].expand_as(j)
    found = (j != i) & (j >= 0)  # oneself need not come first among equal points; -1 fills up
    found &= found.cumsum(1) <= k
    enough = found.sum(1) == k
    found &= enough[:, None]
    return i[found], j[found], (~enough).nonzero()[:, 0]


def _faiss() -> Any:
    try:
        return import_module("faiss")
    except ImportError:
        raise ValueError(
            "KNN(approximate=True) needs faiss: install `beltrami[approximate]`, "
            "or leave `approximate` False for the exact search."
        ) from None
