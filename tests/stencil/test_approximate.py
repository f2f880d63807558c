"""Neighbours by faiss against the exact ones."""

import sys

import pytest
import torch
from torch import Tensor

from beltrami.geometry import PoincareBall
from beltrami.graph import Edges
from beltrami.stencil import KNN, Radius

pytest.importorskip("faiss")


def without_edges(z: Tensor) -> Edges:
    return Edges.build(torch.empty(2, 0, dtype=torch.int64), num_nodes=len(z))


def clusters() -> Tensor:
    """Twenty clusters of a hundred points in eight channels, far apart and of different width."""
    generator = torch.Generator().manual_seed(0)
    centre, width = 10 * torch.randn(20, 1, 8, generator=generator), 0.1 + torch.rand(20, 1, 1, generator=generator)
    points: Tensor = (centre + width * torch.randn(20, 100, 8, generator=generator)).flatten(0, 1)
    return points


def keys(edges: Edges) -> Tensor:
    return edges.i * edges.num_nodes + edges.j


@pytest.mark.parametrize("k", [1, 10, 90])
@pytest.mark.parametrize("on", [None, slice(0, 3)], ids=["all", "u"])
def test_nearly_all_neighbours_are_found(k: int, on: slice | None) -> None:
    z = clusters()
    none = without_edges(z)
    exact, found = KNN(k, on=on)(z, none), KNN(k, on=on, approximate=True)(z, none)
    assert torch.equal(found.in_degree(), exact.in_degree())
    assert not bool((found.i == found.j).any())
    assert len(keys(found).unique()) == found.num_edges == k * len(z)
    assert float(torch.isin(keys(found), keys(exact)).double().mean()) >= 0.95


def test_the_same_comes_twice() -> None:
    z = clusters()
    one, other = (KNN(10, approximate=True)(z, without_edges(z)) for _ in range(2))
    assert torch.equal(one.edge_index, other.edge_index)


@pytest.mark.parametrize("z", [torch.zeros(300, 2), torch.arange(4.0)[:, None].double()], ids=["equal", "few"])
def test_every_node_gets_its_k_neighbours(z: Tensor) -> None:
    found = KNN(3, approximate=True)(z, without_edges(z))
    assert found.in_degree().tolist() == [3] * len(z)
    assert not bool((found.i == found.j).any())


def test_threads_are_those_of_torch() -> None:
    import faiss

    faiss.omp_set_num_threads(torch.get_num_threads() + 1)
    KNN(3, approximate=True)(clusters(), without_edges(clusters()))
    assert faiss.omp_get_max_threads() == torch.get_num_threads()


def test_without_faiss_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ValueError, match=r"needs faiss: install `beltrami\[approximate\]`"):
        KNN(3, approximate=True)(clusters(), without_edges(clusters()))


@pytest.mark.parametrize("limit", [5, 2000])
def test_nearly_all_within_the_radius_are_found_and_nothing_beyond(limit: int) -> None:
    z = clusters()
    none = without_edges(z)
    exact, found = Radius(0.8, limit=limit)(z, none), Radius(0.8, limit=limit, approximate=True)(z, none)
    assert float((z[found.i] - z[found.j]).norm(dim=1).max()) <= 0.8
    assert int(found.in_degree().max()) <= limit
    assert int(found.in_degree().min()) < int(found.in_degree().max())
    assert float(torch.isin(keys(exact), keys(found)).double().mean()) >= 0.95


def test_an_approximate_radius_needs_a_limit_and_a_flat_space() -> None:
    with pytest.raises(ValueError, match=r"Radius can be approximate with a `limit` and in Euclidean space only"):
        Radius(1.0, approximate=True)
    with pytest.raises(ValueError, match=r"Radius can be approximate with a `limit` and in Euclidean space only"):
        Radius(1.0, limit=3, metric=PoincareBall(), approximate=True)
