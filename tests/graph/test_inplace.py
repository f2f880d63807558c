"""Products added in place are the dense ones, compiled or not."""

import pytest
import torch

from beltrami.graph import Edges
from beltrami.graph.ops import backend
from beltrami.graph.ops.inplace import add_aggregate, add_pulled

EDGES = Edges.build(torch.tensor([[0, 1, 2, 2, 3, 1, 0], [1, 0, 1, 3, 2, 1, 4]]), num_nodes=5)


@pytest.fixture(params=[True, False], ids=["compiled", "libraries"], autouse=True)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        pytest.importorskip("numba")
    monkeypatch.setattr(backend, "_has_numba", lambda: request.param)


def dense(a: torch.Tensor) -> torch.Tensor:
    return torch.zeros(5, 5, dtype=a.dtype).index_put((EDGES.i, EDGES.j), a, accumulate=True)


def drawn(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [0, 1, 7])
def test_the_product_is_added(width: int, dtype: torch.dtype) -> None:
    a, z = drawn(EDGES.num_edges, dtype=dtype), drawn(5, width, dtype=dtype)
    out = torch.ones(5, width, dtype=dtype)
    add_aggregate(out, a, z, EDGES, factor=-1.5)
    torch.testing.assert_close(out, 1 - 1.5 * dense(a) @ z)


@pytest.mark.parametrize("width", [0, 1, 7])
def test_the_derivatives_of_a_form_are_added(width: int) -> None:
    a, p = drawn(EDGES.num_edges).requires_grad_(), drawn(5, width)
    q = drawn(width, 5).T.contiguous().requires_grad_()
    by_a, by_q = torch.autograd.grad(3.0 * (p * (dense(a) @ q)).sum(), (a, q))
    out, da = torch.ones(5, width, dtype=torch.float64), torch.ones(EDGES.num_edges, dtype=torch.float64)
    add_pulled(out, da, a.detach(), p, q.detach(), EDGES, factor=3.0)
    torch.testing.assert_close(out, 1 + by_q)
    torch.testing.assert_close(da, 1 + by_a)


def test_threads_share_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = pytest.importorskip("beltrami.graph.ops.compiled")
    monkeypatch.setattr(compiled, "ENOUGH", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    a, p, q = drawn(EDGES.num_edges), drawn(5, 4), drawn(4, 5).T.contiguous()
    out, da = torch.zeros(5, 4, dtype=torch.float64), torch.zeros(EDGES.num_edges, dtype=torch.float64)
    add_pulled(out, da, a, p, q, EDGES)
    torch.testing.assert_close(out, dense(a).T @ p)
    torch.testing.assert_close(da, (p[EDGES.i] * q[EDGES.j]).sum(1))
