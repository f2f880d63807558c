"""The products against dense matrices and loops, their derivatives, batches, and the vendor's library."""

from collections.abc import Callable

import pytest
import torch
from checks import GRAPHS, dense, normal, pairs, ragged
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from beltrami.graph import Edges, aggregate, collect, edge_dot, spread
from beltrami.graph.ops import dispatch, largest, reference, vendor

graphs = pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())
sides = pytest.mark.parametrize("senders", [False, True], ids=["receivers", "senders"])
ways = pytest.mark.parametrize("transposed", [False, True], ids=["straight", "transposed"])


@graphs
@ways
def test_aggregate_is_the_matrix_product(edges: Edges, transposed: bool) -> None:
    a, z = normal(edges.num_edges), normal(edges.num_nodes, 3, seed=1)
    matrix = dense(a, edges).T if transposed else dense(a, edges)
    torch.testing.assert_close(aggregate(a, z, edges, transposed=transposed), matrix @ z)


@graphs
@ways
def test_each_head_is_aggregated_by_its_own_weights(edges: Edges, transposed: bool) -> None:
    a, z = normal(edges.num_edges, 2), normal(edges.num_nodes, 2, 3, seed=1)
    out = aggregate(a, z, edges, transposed=transposed)
    assert out.shape == z.shape
    for h in range(2):
        matrix = dense(a[:, h], edges).T if transposed else dense(a[:, h], edges)
        torch.testing.assert_close(out[:, h], matrix @ z[:, h])


@graphs
def test_edge_dot_takes_p_at_the_receiver_and_q_at_the_sender(edges: Edges) -> None:
    p, q = normal(edges.num_nodes, 2, 3), normal(edges.num_nodes, 2, 3, seed=1)
    out, plain = edge_dot(p, q, edges), edge_dot(p[:, 0], q[:, 0], edges)
    assert out.shape == (edges.num_edges, 2)
    assert plain.shape == (edges.num_edges,)
    for e, (i, j) in enumerate(pairs(edges)):
        for h in range(2):
            expected = sum(float(p[i, h, k]) * float(q[j, h, k]) for k in range(3))
            assert float(out[e, h]) == pytest.approx(expected, abs=1e-14)
    torch.testing.assert_close(plain, out[:, 0], atol=1e-14, rtol=1e-14)


@graphs
@sides
def test_spread_reads_and_collect_sums(edges: Edges, senders: bool) -> None:
    v, e = normal(edges.num_nodes, 2), normal(edges.num_edges, 2, seed=1)
    node = [j if senders else i for i, j in pairs(edges)]
    summed = torch.zeros_like(v)
    for k, where in enumerate(node):
        summed[where] += e[k]
    assert torch.equal(spread(v, edges, senders=senders), v[node])
    torch.testing.assert_close(collect(e, edges, senders=senders), summed)


@graphs
@sides
def test_collect_is_the_adjoint_of_spread(edges: Edges, senders: bool) -> None:
    v, e = normal(edges.num_nodes, 2), normal(edges.num_edges, 2, seed=1)
    there = float((spread(v, edges, senders=senders) * e).sum())
    assert there == pytest.approx(float((v * collect(e, edges, senders=senders)).sum()), abs=1e-13)


@pytest.mark.slow
@graphs
@ways
@pytest.mark.parametrize("heads", [0, 2], ids=["plain", "heads"])
def test_derivatives_of_aggregate(edges: Edges, transposed: bool, heads: int) -> None:
    shape = (heads, 2) if heads else (2,)
    a = normal(edges.num_edges, *shape[:-1]).requires_grad_()
    z = normal(edges.num_nodes, *shape, seed=1).requires_grad_()

    def product(a: Tensor, z: Tensor) -> Tensor:
        return aggregate(a, z, edges, transposed=transposed)

    assert gradcheck(product, (a, z))
    assert gradgradcheck(product, (a, z), fast_mode=True)


@graphs
@pytest.mark.parametrize("heads", [0, 2], ids=["plain", "heads"])
def test_derivatives_of_edge_dot(edges: Edges, heads: int) -> None:
    shape = (edges.num_nodes, heads, 2) if heads else (edges.num_nodes, 2)
    p, q = normal(*shape).requires_grad_(), normal(*shape, seed=1).requires_grad_()

    def product(p: Tensor, q: Tensor) -> Tensor:
        return edge_dot(p, q, edges)

    assert gradcheck(product, (p, q))
    assert gradgradcheck(product, (p, q), fast_mode=True)


@pytest.mark.slow
@graphs
@sides
@pytest.mark.parametrize("operation", [spread, collect])
def test_derivatives_of_spread_and_collect(edges: Edges, senders: bool, operation: Callable[..., Tensor]) -> None:
    rows = edges.num_nodes if operation is spread else edges.num_edges
    x = normal(rows, 2).requires_grad_()

    def cubed(x: Tensor) -> Tensor:  # has a second derivative to check
        return operation(x**3, edges, senders=senders)

    assert gradcheck(cubed, (x,))
    assert gradgradcheck(cubed, (x,))


def test_the_derivative_by_one_factor_alone_is_the_same() -> None:
    edges, a, z = ragged(), normal(9).requires_grad_(), normal(6, 2, seed=1).requires_grad_()
    da, dz = torch.autograd.grad(aggregate(a, z, edges).sin().sum(), (a, z))
    assert torch.equal(torch.autograd.grad(aggregate(a, z.detach(), edges).sin().sum(), a)[0], da)
    assert torch.equal(torch.autograd.grad(aggregate(a.detach(), z, edges).sin().sum(), z)[0], dz)


@graphs
@pytest.mark.parametrize("channels", [0, 1, 5])
def test_the_products_of_the_vendor_equal_the_reference(edges: Edges, channels: int) -> None:
    values = normal(edges.num_edges, 2)
    left, right = (normal(edges.num_nodes, 2, channels, seed=s) for s in (1, 2))
    for pattern in (edges.rows, edges.columns):
        torch.testing.assert_close(vendor.spmm(pattern, values, left), reference.spmm(pattern, values, left))
        torch.testing.assert_close(vendor.sddmm(pattern, left, right), reference.sddmm(pattern, left, right))


def test_the_products_accept_strided_views() -> None:
    edges, wide, a = ragged(), normal(6, 2, 4), normal(9, 3)
    torch.testing.assert_close(aggregate(a[:, 1], wide[:, 1, ::2], edges), dense(a[:, 1], edges) @ wide[:, 1, ::2])
    p, q = wide[:, 0].T.contiguous().T, wide[:, 1, :]
    torch.testing.assert_close(edge_dot(p, q, edges), (p[edges.i] * q[edges.j]).sum(-1))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_products_and_gradients_keep_their_type(dtype: torch.dtype) -> None:
    edges = ragged()
    a, z = normal(9).to(dtype).requires_grad_(), normal(6, 3, seed=1).to(dtype).requires_grad_()
    out = aggregate(a, z, edges)
    da, dz = torch.autograd.grad(out.sum() + collect(a[:, None], edges).sum(), (a, z))
    assert {out.dtype, da.dtype, dz.dtype} == {dtype}
    exact = dense(a.detach().double(), edges) @ z.detach().double()
    torch.testing.assert_close(out.detach().double(), exact, atol=0.05, rtol=0.02)


def test_products_give_the_same_bits_every_time() -> None:
    edges, a, z = ragged(), normal(9).float().requires_grad_(), normal(6, 3, seed=1).float().requires_grad_()

    def once() -> tuple[Tensor, ...]:
        out = aggregate(a, z, edges)
        return (out, *torch.autograd.grad(out.exp().sum(), (a, z)))

    first = once()
    for _ in range(5):
        assert all(torch.equal(x, y) for x, y in zip(first, once(), strict=True))


BATCHED: dict[str, Callable[..., Tensor]] = {
    "aggregate": lambda x, y: aggregate(x[:9], y, ragged()),
    "edge_dot": lambda x, y: edge_dot(x[:6], y[..., :1], ragged()),
    "spread": lambda x, y: spread(x[:6], ragged(), senders=True) * y.sum(),
    "collect": lambda x, y: collect(x[:9], ragged()) * y.sum(),
    "largest": lambda x, y: largest(x[:9], ragged()).clamp(min=-9) * y.sum(),
}


@pytest.mark.parametrize("in_turn", [True, False], ids=["in turn", "side by side"])
@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("name", BATCHED)
def test_batches_of_runs_equal_the_runs(
    name: str, in_dims: tuple[int | None, ...], in_turn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "loops_over_runs", lambda _: in_turn)
    x = normal(*([3] if in_dims[0] == 0 else []), 9, 2)
    y = normal(*([3] if in_dims[1] == 0 else []), 6, 2, 4, seed=1)
    if name == "edge_dot":
        x = x[..., None]
    found = torch.func.vmap(BATCHED[name], in_dims=in_dims)(x, y)
    for run in range(3):
        wanted = BATCHED[name](x[run] if in_dims[0] == 0 else x, y[run] if in_dims[1] == 0 else y)
        torch.testing.assert_close(found[run], wanted)
