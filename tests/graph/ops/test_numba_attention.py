"""Attention by numba against loops and plain operations: values, derivatives, extremes, threads."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest
import torch
from checks import GRAPHS, NORMALISERS, alone, bare, crowd, dense, normal, ragged, weights_by_loops
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import vjp, vmap
from torch.nn import functional as F

from beltrami.graph import (
    Both,
    Columns,
    Edges,
    Leaky,
    Normaliser,
    PairScore,
    Rows,
    attend,
    exponential,
    identity,
    ops,
    softmax_link,
    squareplus_link,
)
from beltrami.graph.ops import attention, dispatch
from beltrami.graph.ops.unit import unit

pytest.importorskip("numba")

from beltrami.graph.ops import numba as backend

close = partial(torch.testing.assert_close, atol=1e-12, rtol=1e-12)
ACTIVATIONS = (identity, exponential, Leaky(0.2))
LINKS = (softmax_link, squareplus_link)


def inputs(nodes: int, *, heads: int = 3, width: int = 5, channels: int = 7) -> tuple[Tensor, Tensor, Tensor]:
    """p, q (nodes, heads, width), with dot products of about one, and z (nodes, channels)."""
    p, q = (0.5 * normal(nodes, heads, width, seed=s) for s in (1, 2))
    return p.requires_grad_(), q.requires_grad_(), normal(nodes, channels, seed=3).requires_grad_()


def with_gradients(
    pair: tuple[Tensor, Tensor], z: Tensor, edges: Edges, normalise: Normaliser, f: attention.Activation = identity
) -> tuple[Tensor, ...]:
    out = attend(PairScore(*pair, f), z, edges, normalise=normalise)
    weight = normal(*out.shape, seed=7).to(out.dtype)
    return (out, *torch.autograd.grad((out * weight).sum(), (*pair, z)))


def assert_equals_plain_operations(run: Callable[[], tuple[Tensor, ...]]) -> None:
    found = run()
    with ops.use("reference"):
        wanted = run()
    for x, y in zip(found, wanted, strict=True):
        close(x, y)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Return a function that sets the number of threads; any amount of work is worth one."""
    before = torch.get_num_threads()
    monkeypatch.setattr(backend, "WORK_PER_THREAD", 1)

    def choose(count: int) -> None:
        torch.set_num_threads(count)
        backend._pool.cache_clear()

    yield choose
    choose(before)


@pytest.mark.parametrize("normalise", NORMALISERS, ids=repr)
def test_attention_by_numba_equals_the_loops(normalise: Normaliser) -> None:
    edges, (p, q, z) = ragged(weighted=True), inputs(6)
    out = attend(PairScore(p, q), z, edges, normalise=normalise)
    assert "_Attend" in str(out.grad_fn)
    weights = weights_by_loops(lambda i, j, h: float(p[i, h].detach() @ q[j, h].detach()), edges, normalise, heads=3)
    close(out.detach(), dense(weights, edges) @ z.detach())


@pytest.mark.parametrize("f", ACTIVATIONS, ids=lambda f: getattr(f, "__name__", repr(f)))
@pytest.mark.parametrize("normalise", NORMALISERS, ids=repr)
@pytest.mark.parametrize(("heads", "width"), [(1, 16), (8, 3)])
def test_values_and_gradients_equal_plain_operations(
    normalise: Normaliser, f: attention.Activation, heads: int, width: int
) -> None:
    for edges in (GRAPHS["kite"], crowd()):  # without and with weights, double edges, an isolated node
        p, q, z = inputs(edges.num_nodes, heads=heads, width=width)
        assert_equals_plain_operations(partial(with_gradients, (p, q), z, edges, normalise, f))


@pytest.mark.parametrize("normalise", [Rows(), Columns(squareplus_link), Both()], ids=repr)
@pytest.mark.parametrize("edges", [bare(), alone(loop=False), alone(loop=True)], ids=["bare", "alone", "loop"])
def test_graphs_without_edges_or_of_one_node(normalise: Normaliser, edges: Edges) -> None:
    p, q, z = inputs(edges.num_nodes)
    assert_equals_plain_operations(partial(with_gradients, (p, q), z, edges, normalise))


@pytest.mark.parametrize("normalise", NORMALISERS, ids=repr)
def test_single_precision_is_as_accurate_as_its_rounding(normalise: Normaliser) -> None:
    exact = inputs(9)
    short = [x.detach().float().requires_grad_() for x in exact]
    found = with_gradients((short[0], short[1]), short[2], crowd(), normalise, exponential)
    wanted = with_gradients((exact[0], exact[1]), exact[2], crowd(), normalise, exponential)
    for x, y in zip(found, wanted, strict=True):
        assert x.dtype == torch.float32
        torch.testing.assert_close(x.double(), y, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("over", [Rows, Columns, Both])
@pytest.mark.parametrize(("scale", "dtype"), [(1e-9, torch.float64), (1e200, torch.float64), (1e30, torch.float32)])
def test_scores_of_any_size_give_finite_results(
    over: Callable[..., Normaliser], link: Callable[[Tensor], Tensor], scale: float, dtype: torch.dtype
) -> None:
    p, q, z = (x.detach().to(dtype) for x in inputs(4))
    p, q, z = (scale * p).requires_grad_(), q.requires_grad_(), z.requires_grad_()
    run = partial(with_gradients, (p, q), z, GRAPHS["kite"], over(link))
    assert all(bool(torch.isfinite(x).all()) for x in run())
    if dtype == torch.float64:
        assert_equals_plain_operations(lambda: run()[:1])


@pytest.mark.slow
@pytest.mark.parametrize("normalise", [Rows(), Columns(squareplus_link), Both(squareplus_link)], ids=repr)
def test_first_and_second_derivatives_are_those_of_finite_differences(normalise: Normaliser) -> None:
    p, q, z = inputs(6, heads=2, width=2, channels=2)

    def run(p: Tensor, q: Tensor, z: Tensor) -> Tensor:
        return attend(PairScore(p, q, Leaky(0.3)), z, ragged(weighted=True), normalise=normalise)

    assert gradcheck(run, (p, q, z))
    assert gradgradcheck(run, (p, q, z))


def test_inputs_need_not_be_contiguous() -> None:
    p, q, z = inputs(9)
    turned = [x.detach().transpose(0, -1).contiguous().transpose(0, -1).requires_grad_() for x in (p, q, z)]
    for x, y in zip(
        with_gradients((turned[0], turned[1]), turned[2], crowd(), Both()),
        with_gradients((p, q), z, crowd(), Both()),
        strict=True,
    ):
        assert torch.equal(x, y)


@pytest.mark.parametrize("normalise", [Rows(), Columns(), Both(squareplus_link)], ids=repr)
def test_the_number_of_threads_changes_no_bit(normalise: Normaliser, threads: Callable[[int], None]) -> None:
    p, q, z = (x.detach().float().requires_grad_() for x in inputs(9))
    found = []
    for count in (1, 2, 4):
        threads(count)
        found.append((*with_gradients((unit(p), unit(q)), z, crowd(), normalise), unit(z)))
    for other in found[1:]:
        assert all(torch.equal(x, y) for x, y in zip(found[0], other, strict=True))


def test_numba_serves_attention_of_any_width_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    p, q, z = inputs(4, heads=1)
    monkeypatch.setattr(attention, "MAX_WIDTH", 1)
    for name, fused in (("auto", True), ("numba", True), ("vendor", False), ("reference", False)):
        with ops.use(name):
            out = attend(PairScore(p, q), z, GRAPHS["kite"], normalise=Rows())
        assert ("_Attend" in str(out.grad_fn)) == fused
    monkeypatch.setattr(dispatch, "_is_installed", lambda package: False)
    out = attend(PairScore(p, q), z, GRAPHS["kite"], normalise=Rows())
    assert "_Attend" not in str(out.grad_fn)


def test_transforms_of_functions_take_plain_operations() -> None:
    p, q, z = (x.detach() for x in inputs(4))

    def run(z: Tensor) -> Tensor:
        return attend(PairScore(unit(p), unit(q)), z, GRAPHS["kite"], normalise=Rows())

    close(vmap(run)(torch.stack((z, 2 * z))), torch.stack((run(z), run(2 * z))))
    ones = torch.ones_like(z)
    close(vjp(run, z)[1](ones)[0], torch.autograd.functional.vjp(run, z, ones)[1])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_unit_vectors_and_their_gradient_are_those_of_torch(dtype: torch.dtype) -> None:
    x = normal(6, 3, 5).to(dtype)
    x[0], x[1] = 0, 1e-14  # below the least norm
    x.requires_grad_()
    g, tolerance = normal(6, 3, 5, seed=1).to(dtype), 4 * torch.finfo(dtype).eps
    found, wanted = unit(x), F.normalize(x, dim=-1)
    assert "_Unit" in str(found.grad_fn)
    torch.testing.assert_close(found, wanted, atol=tolerance, rtol=tolerance)
    slopes = [torch.autograd.grad(u, x, g)[0] for u in (found, wanted)]
    torch.testing.assert_close(slopes[0], slopes[1], atol=tolerance, rtol=tolerance)


def test_unit_vectors_have_two_derivatives() -> None:
    x = normal(3, 2, 3).transpose(0, 1).requires_grad_()
    assert gradcheck(unit, x)
    assert gradgradcheck(unit, x)
