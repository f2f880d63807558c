"""The compiled products against the reference, for any number of heads, threads and rows."""

from collections.abc import Iterator

import pytest
import torch
from checks import GRAPHS, alone, crowd, normal

from beltrami.graph import Edges, aggregate, edge_dot
from beltrami.graph.ops import dispatch, reference

compiled = pytest.importorskip("beltrami.graph.ops.numba", reason="needs numba")
EDGES = {**GRAPHS, "crowd": crowd(), "alone": alone(loop=False), "loop": alone(loop=True)}
graphs = pytest.mark.parametrize("edges", EDGES.values(), ids=EDGES.keys())


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """So many threads, for any amount of work."""
    before = torch.get_num_threads()
    monkeypatch.setattr(compiled, "ENOUGH", 1)
    compiled._pool.cache_clear()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)
    compiled._pool.cache_clear()


@graphs
@pytest.mark.parametrize("heads", [1, 2, 5])
@pytest.mark.parametrize("width", [0, 1, 7])
def test_products_are_those_of_the_reference(edges: Edges, heads: int, width: int, threads: int) -> None:
    a = normal(edges.num_edges, heads)
    p, q = (normal(edges.num_nodes, heads, width, seed=s) for s in (1, 2))
    for pattern in (edges.rows, edges.columns):
        out, dots = compiled.spmm(pattern, a, p), compiled.sddmm(pattern, p, q)
        assert out.shape == p.shape
        assert dots.shape == (edges.num_edges, heads)
        for h in range(heads):
            torch.testing.assert_close(out[:, h], reference.spmm(pattern, a[:, h], p[:, h]))
            torch.testing.assert_close(dots[:, h], reference.sddmm(pattern, p[:, h], q[:, h]))


def test_the_number_of_threads_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    edges, found = crowd(), []
    monkeypatch.setattr(compiled, "ENOUGH", 1)
    before = torch.get_num_threads()
    for count in (1, 2, 4):
        torch.set_num_threads(count)
        compiled._pool.cache_clear()
        found.append(compiled.spmm(edges.rows, normal(edges.num_edges, 3).float(), normal(9, 3, 6).float()))
    torch.set_num_threads(before)
    compiled._pool.cache_clear()
    assert all(torch.equal(found[0], other) for other in found)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_several_heads_on_the_cpu_take_this_way_and_their_derivatives_too(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges, found = crowd(), []
    for has in (True, False):
        monkeypatch.setattr(dispatch, "_has_numba", lambda has=has: has)
        a = normal(edges.num_edges, 3).to(dtype).requires_grad_()
        p, q = (normal(9, 3, 4, seed=s).to(dtype).requires_grad_() for s in (1, 2))
        out = aggregate(a, p, edges).square().sum() + edge_dot(p, q, edges).square().sum()
        found.append((out, *torch.autograd.grad(out, (a, p, q))))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
