"""Weights of the edges that depend on the graph alone, found once for each graph and type."""

from collections.abc import Callable, Hashable
from typing import TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from beltrami.graph import Both, Edges, Normaliser, Rows

T = TypeVar("T")


def once(make: Callable[..., T]) -> Callable[..., T]:
    """A function of a graph and of what else it is given, with its results kept for as long as the graph lives."""
    known: WeakKeyDictionary[Edges, dict[Hashable, T]] = WeakKeyDictionary()

    def recalled(edges: Edges, *others: Hashable) -> T:
        found = known.setdefault(edges, {})
        if others not in found:
            found[others] = make(edges, *others)
        return found[others]

    return recalled


@once
def symmetric(edges: Edges, dtype: torch.dtype) -> Tensor:
    r""":math:`w_{ij} / \sqrt{d_i d_j}` on each edge, (m,), where d sums the edges' weights w."""
    return _normalised(Both(), edges, dtype)


@once
def mean(edges: Edges, dtype: torch.dtype) -> Tensor:
    r""":math:`w_{ij} / d_i` on each edge, (m,): the mean over neighbours."""
    return _normalised(Rows(), edges, dtype)


@once
def degree_coordinates(edges: Edges, dtype: torch.dtype) -> Tensor:
    r"""MoNet's pseudo-coordinates :math:`(d_i^{-1/2}, d_j^{-1/2})` of each edge, (m, 2), d the number of edges."""
    received, sent = edges.in_degree()[edges.i], edges.out_degree()[edges.j]
    return torch.stack((received, sent), dim=1).to(dtype).rsqrt()


def _normalised(normaliser: Normaliser, edges: Edges, dtype: torch.dtype) -> Tensor:
    with torch.no_grad():
        return normaliser(torch.zeros(edges.num_edges, 1, dtype=dtype, device=edges.device), edges)[:, 0]
