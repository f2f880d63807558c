"""The numba backend against the reference, for any number of heads, threads and rows."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from checks import GRAPHS, alone, crowd, normal

from beltrami.graph import Edges
from beltrami.graph.ops import reference

numba = pytest.importorskip("numba")

from beltrami.graph.ops import numba as backend  # noqa: E402

EDGES = {**GRAPHS, "crowd": crowd(), "alone": alone(loop=False), "loop": alone(loop=True)}


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Any amount of work is worth a thread."""
    before = torch.get_num_threads()
    monkeypatch.setattr(backend, "WORK_PER_THREAD", 1)
    backend._pool.cache_clear()
    yield
    torch.set_num_threads(before)
    backend._pool.cache_clear()


@pytest.mark.parametrize("edges", EDGES.values(), ids=EDGES.keys())
@pytest.mark.parametrize(("heads", "width"), [(1, 7), (2, 0), (5, 1), (3, 4)])
@pytest.mark.parametrize("count", [1, 3])
def test_products_equal_the_reference(edges: Edges, heads: int, width: int, count: int, threads: None) -> None:
    torch.set_num_threads(count)
    a = normal(edges.num_edges, heads)
    p, q = (normal(edges.num_nodes, heads, width, seed=s) for s in (1, 2))
    for pattern in (edges.rows, edges.columns):
        torch.testing.assert_close(backend.spmm(pattern, a, p), reference.spmm(pattern, a, p))
        torch.testing.assert_close(backend.sddmm(pattern, p, q), reference.sddmm(pattern, p, q))


def test_the_number_of_threads_changes_no_bit(threads: None) -> None:
    edges, found = crowd(), []
    for count in (1, 2, 4):
        torch.set_num_threads(count)
        backend._pool.cache_clear()
        found.append(backend.spmm(edges.rows, normal(edges.num_edges, 3).float(), normal(9, 3, 6).float()))
    assert all(torch.equal(found[0], other) for other in found)


def test_a_function_is_compiled_also_where_no_folder_is_writable(monkeypatch: pytest.MonkeyPatch) -> None:
    njit, asked = numba.njit, []

    def without_cache(*args: Any, cache: bool = False, **options: Any) -> Any:
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*args, **options)

    def double(count: int) -> int:
        return 2 * count

    monkeypatch.setattr(numba, "njit", without_cache)
    assert backend.jit(double)(10) == 20
    assert asked == [True, False]
