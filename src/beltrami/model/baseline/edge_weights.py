"""Edge weights that depend on the graph alone, computed once for each graph and type."""

from collections.abc import Callable, Hashable
from typing import TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from beltrami.graph import Both, Edges, Normaliser, Rows

T = TypeVar("T")


def cached_per_graph(compute: Callable[..., T]) -> Callable[..., T]:
    """Decorate a function of a graph and hashable arguments: cache its results as long as the graph exists."""
    cache: WeakKeyDictionary[Edges, dict[Hashable, T]] = WeakKeyDictionary()

    def cached(edges: Edges, *arguments: Hashable) -> T:
        results = cache.setdefault(edges, {})
        if arguments not in results:
            results[arguments] = compute(edges, *arguments)
        return results[arguments]

    return cached


@cached_per_graph
def symmetric_weights(edges: Edges, dtype: torch.dtype) -> Tensor:
    r"""Return :math:`w_{ij} / \sqrt{d_i d_j}` on each edge, (m,), where d sums the edges' weights w."""
    return _normalised(Both(), edges, dtype)


@cached_per_graph
def mean_weights(edges: Edges, dtype: torch.dtype) -> Tensor:
    r"""Return :math:`w_{ij} / d_i` on each edge, (m,): the mean over neighbours."""
    return _normalised(Rows(), edges, dtype)


@cached_per_graph
def degree_coordinates(edges: Edges, dtype: torch.dtype) -> Tensor:
    r"""Return MoNet's pseudo-coordinates :math:`(d_i^{-1/2}, d_j^{-1/2})` of each edge, (m, 2), d the degree."""
    received, sent = edges.in_degree()[edges.i], edges.out_degree()[edges.j]
    return torch.stack((received, sent), dim=1).to(dtype).rsqrt()


def _normalised(normaliser: Normaliser, edges: Edges, dtype: torch.dtype) -> Tensor:
    with torch.no_grad():
        return normaliser(torch.zeros(edges.num_edges, 1, dtype=dtype, device=edges.device), edges)[:, 0]
