"""Steps of a recurrence against dense matrices, by every backend."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest
import torch
from checks import bare, crowd, dense, normal, ragged
from torch import Tensor

from beltrami.graph import Edges, ops
from beltrami.graph.ops.recurrence import LinearRecurrence

GRAPHS: dict[str, Callable[[], Edges]] = {
    "crowd": crowd,
    "ragged": ragged,
    "bare": bare,
}
graphs = pytest.mark.parametrize("name", GRAPHS)
shapes = pytest.mark.parametrize(("runs", "width"), [(1, 5), (3, 1), pytest.param(2, 19, marks=pytest.mark.slow)])
kinds = pytest.mark.parametrize(("shared", "full"), [(False, True), (True, False)], ids=["own and full", "shared"])
close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)


@pytest.fixture(params=["numba", "vendor", "triton"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Select a backend, and return its device."""
    if request.param == "triton":
        sparse_product = pytest.importorskip("beltrami.graph.ops.triton.sparse_product")
        monkeypatch.setattr("beltrami.graph.row_chunks.LONG", 4)
        monkeypatch.setattr(sparse_product, "TILE", 16)
        monkeypatch.setattr(sparse_product, "MAX_CHANNELS", 16)  # nineteen channels take two programs
    elif request.param == "numba":
        pytest.importorskip("numba")
    with ops.use(request.param):
        yield "cuda" if request.param == "triton" and torch.cuda.is_available() else "cpu"


def weights(runs: int, edges: Edges, *, shared: bool) -> Tensor:
    return normal(1 if shared else runs, edges.num_edges).expand(runs, -1)


def matrices(a: Tensor, edges: Edges, diagonal: Tensor | None) -> Tensor:
    """B of each run, (runs, n, n)."""
    extra = torch.zeros(edges.num_nodes).double() if diagonal is None else diagonal[:, 0]
    return torch.stack([dense(one, edges) + torch.diag(extra) for one in a])


def every_other(edges: Edges) -> Tensor:
    """One for every other node, (n, 1)."""
    return (torch.arange(edges.num_nodes)[:, None] % 2).double()


@pytest.mark.slow
@graphs
@shapes
@kinds
def test_a_step_forwards_equals_the_dense_step(
    path: str, name: str, runs: int, width: int, shared: bool, full: bool
) -> None:
    edges = GRAPHS[name]()
    a, y, b = weights(runs, edges, shared=shared), *normal(2, runs, edges.num_nodes, width, seed=1)
    diagonal = every_other(edges) if full else None
    wanted = -1.5 * matrices(a, edges, diagonal) @ y
    out = torch.full_like(y, torch.nan).to(path)
    before = (2.5, b.to(path)) if full else None
    recurrence = LinearRecurrence(edges.to(path), None if diagonal is None else diagonal.to(path))
    recurrence.advance(out, a.to(path), y.to(path), factor=-1.5, previous=before)
    close(out.cpu(), wanted + 2.5 * b if full else wanted)


@pytest.mark.slow
@graphs
@shapes
@kinds
def test_a_step_backwards_is_the_derivative_of_a_step_forwards(
    path: str, name: str, runs: int, width: int, shared: bool, full: bool
) -> None:
    """The derivative of c <p, B q> by q, and by the weights of every run."""
    edges = GRAPHS[name]()
    a, known = weights(runs, edges, shared=shared), normal(runs, edges.num_edges, seed=7)
    p, q, b, g = normal(4, runs, edges.num_nodes, width, seed=1)
    diagonal, number = every_other(edges) if full else None, normal(runs, 2)[:, 1]
    by_a = 3.0 * (p[:, edges.i] * q[:, edges.j]).sum(2)
    by_q = 3.0 * matrices(a, edges, diagonal).mT @ p
    out, sums = torch.full_like(p, torch.nan).to(path), known.clone().to(path)
    LinearRecurrence(edges.to(path), None if diagonal is None else diagonal.to(path)).pull(
        out,
        a.to(path),
        p.to(path),
        factor=3.0,
        previous=(-0.25, b.to(path)) if full else None,
        cotangent=(number.to(path), g.to(path)),
        edge_sums=(q.to(path), sums),
    )
    wanted = by_q + number[:, None, None] * g
    close(out.cpu(), wanted - 0.25 * b if full else wanted)
    close(sums.cpu(), known + by_a)


def test_cotangents_may_be_strided(path: str) -> None:
    edges, many, numbers = crowd(), normal(3, 2, 9, 4), normal(3, 1, 5)
    a, p = normal(3, 47).to(path), normal(3, 9, 4).to(path)
    out = torch.empty_like(p)
    cotangent = (numbers[:, 0, 2].to(path), many.to(path)[:, 1])
    LinearRecurrence(edges.to(path)).pull(out, a, p, factor=1.0, cotangent=cotangent)
    close(out.cpu(), matrices(a.cpu(), edges, None).mT @ p.cpu() + numbers[:, 0, 2, None, None] * many[:, 1])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_kernels_sum_shorter_numbers_in_single_precision(kernels: str, dtype: torch.dtype) -> None:
    edges = crowd().to(kernels)
    a, p, q = (normal(*shape).to(kernels, dtype) for shape in ((2, 47), (2, 9, 3), (2, 9, 3)))

    def both(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        out, sums = torch.empty_like(p, dtype=dtype), torch.zeros_like(a, dtype=dtype)
        x, y, z = (tensor.to(dtype) for tensor in (a, p, q))
        cotangent = (x.new_ones(2), y)
        LinearRecurrence(edges).pull(
            out, x, y, factor=2.0, previous=(-1.0, z), cotangent=cotangent, edge_sums=(z, sums)
        )
        return out, sums

    for found, wanted in zip(both(dtype), both(torch.float64), strict=True):
        assert found.dtype == dtype
        torch.testing.assert_close(found.double(), wanted, atol=1e-5, rtol=max(1e-6, torch.finfo(dtype).eps))


def test_threads_divide_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = pytest.importorskip("beltrami.graph.ops.numba")
    monkeypatch.setattr(backend, "WORK_PER_THREAD", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    edges, a = crowd(), normal(1, 47)
    p, q = normal(2, 1, 9, 4)
    out, sums = torch.empty_like(p), torch.zeros_like(a)
    cotangent = (torch.full((1,), 2.0, dtype=torch.float64), q)
    LinearRecurrence(edges).pull(out, a, p, factor=1.0, cotangent=cotangent, edge_sums=(q, sums))
    close(out[0], dense(a[0], edges).T @ p[0] + 2.0 * q[0])
    close(sums[0], (p[0][edges.i] * q[0][edges.j]).sum(1))
