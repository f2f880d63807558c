"""Steps of a recurrence are the dense statement: kernels, compiled loops and libraries."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from checks import alone, bare, crowd, dense, normal, ragged
from torch import Tensor

from beltrami.graph import Edges
from beltrami.graph.ops import dispatch
from beltrami.graph.ops.recurrence import advance, pull

GRAPHS: dict[str, Callable[[], Edges]] = {
    "crowd": crowd,
    "ragged": ragged,
    "bare": bare,
    "alone": partial(alone, loop=False),
}
graphs = pytest.mark.parametrize("name", GRAPHS)
shapes = pytest.mark.parametrize(("runs", "width"), [(1, 5), (3, 1), (3, 4), (2, 19)])
kinds = pytest.mark.parametrize(("shared", "full"), [(False, True), (True, False)], ids=["own and full", "shared"])
close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)


@pytest.fixture(params=["compiled", "libraries", "kernels"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the steps are computed, in each of the ways there are."""
    if request.param == "kernels":
        product = pytest.importorskip("beltrami.graph.ops.triton.product")
        monkeypatch.setattr("beltrami.graph.row_chunks.LONGEST", 4)
        monkeypatch.setattr(product, "TILE", 16)
        monkeypatch.setattr(product, "WIDEST", 16)  # nineteen channels are two programs
        monkeypatch.setattr(dispatch, "has_kernel", lambda _: True)
        return "cuda" if torch.cuda.is_available() else "cpu"
    if request.param == "compiled":
        pytest.importorskip("numba")
    monkeypatch.setattr(dispatch, "_has_numba", lambda: request.param == "compiled")
    return "cpu"


def weights(runs: int, edges: Edges, *, shared: bool) -> Tensor:
    return normal(1 if shared else runs, edges.num_edges).expand(runs, -1)


def matrices(a: Tensor, edges: Edges, idle: Tensor | None) -> Tensor:
    """B of each run, (runs, n, n)."""
    still = torch.zeros(edges.num_nodes).double() if idle is None else idle[:, 0]
    return torch.stack([dense(one, edges) + torch.diag(still) for one in a])


def idle_of(edges: Edges) -> Tensor:
    """Every other node, edges or none."""
    return (torch.arange(edges.num_nodes)[:, None] % 2).double()


@graphs
@shapes
@kinds
def test_a_step_forwards_is_the_dense_one(
    path: str, name: str, runs: int, width: int, shared: bool, full: bool
) -> None:
    edges = GRAPHS[name]()
    a, y, b = weights(runs, edges, shared=shared), *normal(2, runs, edges.num_nodes, width, seed=1)
    idle = idle_of(edges) if full else None
    wanted = -1.5 * matrices(a, edges, idle) @ y
    out = torch.full_like(y, torch.nan).to(path)
    before = (2.5, b.to(path)) if full else None
    still = None if idle is None else idle.to(path)
    advance(out, a.to(path), y.to(path), edges.to(path), factor=-1.5, before=before, idle=still)
    close(out.cpu(), wanted + 2.5 * b if full else wanted)


@graphs
@shapes
@kinds
def test_a_step_backwards_is_the_derivative(
    path: str, name: str, runs: int, width: int, shared: bool, full: bool
) -> None:
    """Of the form c <p, B q>: by q, and by the weights of every run."""
    edges = GRAPHS[name]()
    a, known = weights(runs, edges, shared=shared), normal(runs, edges.num_edges, seed=7)
    p, q, b, g = normal(4, runs, edges.num_nodes, width, seed=1)
    idle, number = idle_of(edges) if full else None, normal(runs, 2)[:, 1]
    by_a = 3.0 * (p[:, edges.i] * q[:, edges.j]).sum(2)
    by_q = 3.0 * matrices(a, edges, idle).mT @ p
    out, sums = torch.full_like(p, torch.nan).to(path), known.clone().to(path)
    pull(
        out,
        a.to(path),
        p.to(path),
        edges.to(path),
        factor=3.0,
        before=(-0.25, b.to(path)) if full else None,
        given=(number.to(path), g.to(path)) if full else None,
        across=(q.to(path), sums),
        idle=None if idle is None else idle.to(path),
    )
    close(out.cpu(), by_q - 0.25 * b + number[:, None, None] * g if full else by_q)
    close(sums.cpu(), known + by_a)


def test_given_states_may_be_some_of_many(path: str) -> None:
    edges, many, numbers = crowd(), normal(3, 2, 9, 4), normal(3, 1, 5)
    a, p = normal(3, 47).to(path), normal(3, 9, 4).to(path)
    out = torch.empty_like(p)
    pull(out, a, p, edges.to(path), factor=1.0, given=(numbers[:, 0, 2].to(path), many.to(path)[:, 1]))
    close(out.cpu(), matrices(a.cpu(), edges, None).mT @ p.cpu() + numbers[:, 0, 2, None, None] * many[:, 1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_kernels_sum_shorter_numbers_in_single_precision(kernels: str, dtype: torch.dtype) -> None:
    edges = crowd().to(kernels)
    a, p, q = (normal(*shape).to(kernels, dtype) for shape in ((2, 47), (2, 9, 3), (2, 9, 3)))

    def both(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        out, sums = torch.empty_like(p, dtype=dtype), torch.zeros_like(a, dtype=dtype)
        x, y, z = (tensor.to(dtype) for tensor in (a, p, q))
        pull(out, x, y, edges, factor=2.0, before=(-1.0, z), across=(z, sums))
        return out, sums

    for found, wanted in zip(both(dtype), both(torch.float64), strict=True):
        assert found.dtype == dtype
        torch.testing.assert_close(found.double(), wanted, atol=1e-5, rtol=max(1e-6, torch.finfo(dtype).eps))


def test_threads_share_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = pytest.importorskip("beltrami.graph.ops.numba")
    monkeypatch.setattr(compiled, "ENOUGH", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    edges, a = crowd(), normal(1, 47)
    p, q = normal(2, 1, 9, 4)
    out, sums = torch.empty_like(p), torch.zeros_like(a)
    pull(out, a, p, edges, factor=1.0, across=(q, sums))
    close(out[0], dense(a[0], edges).T @ p[0])
    close(sums[0], (p[0][edges.i] * q[0][edges.j]).sum(1))
