"""Attention against loops, and its fused kernels against plain operations: values, derivatives, extremes."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from checks import GRAPHS, NORMALISERS, alone, crowd, dense, normal, ragged, weights_by_loops
from torch import Tensor

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
    squared_distance,
    squareplus_link,
)
from beltrami.graph.ops import attention

close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)
graphs = pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())
normalisers = pytest.mark.parametrize("normalise", NORMALISERS, ids=repr)


def inputs(nodes: int, heads: int = 3, device: str = "cpu") -> tuple[Tensor, Tensor, Tensor]:
    """p, q (nodes, heads, 2) and z (nodes, 3)."""
    p, q = (normal(nodes, heads, 2, seed=s).to(device).requires_grad_() for s in (1, 2))
    return p, q, normal(nodes, 3, seed=3).to(device).requires_grad_()


def with_derivatives(
    edges: Edges, device: str, normalise: Normaliser, *, heads: int = 3, f: attention.Activation = identity
) -> tuple[Tensor, ...]:
    p, q, z = inputs(edges.num_nodes, heads, device)
    out = attend(PairScore(p, q, f), z, edges.to(device), normalise=normalise)
    return (out, *torch.autograd.grad((out * normal(*out.shape, seed=7).to(device)).sum(), (p, q, z)))


def assert_kernels_equal_the_reference(run: Callable[[], tuple[Tensor, ...]]) -> None:
    found = run()
    with ops.use("reference"):
        wanted = run()
    for x, y in zip(found, wanted, strict=True):
        close(x, y)


@graphs
@normalisers
def test_attention_is_the_mean_over_heads_of_normalised_weights(edges: Edges, normalise: Normaliser) -> None:
    p, q, z = (x.detach() for x in inputs(edges.num_nodes))
    weights = weights_by_loops(lambda i, j, h: float(p[i, h] @ q[j, h]), edges, normalise, heads=3)
    close(attend(PairScore(p, q), z, edges, normalise=normalise), dense(weights, edges) @ z)


def test_the_activation_comes_between_the_dot_product_and_the_link() -> None:
    edges = ragged()
    p, q, z = (x.detach() for x in inputs(6))
    for f in (identity, exponential, Leaky(0.3), torch.tanh):

        def score(i: int, j: int, h: int, f: attention.Activation = f) -> float:
            return float(f(p[i, h] @ q[j, h]))

        weights = weights_by_loops(score, edges, Rows(), heads=3)
        close(attend(PairScore(p, q, f), z, edges, normalise=Rows()), dense(weights, edges) @ z)


def test_the_score_of_squared_distance_is_the_distance() -> None:
    edges, (p, q, _) = ragged(), inputs(6)
    score = squared_distance(p, q, start=torch.tensor(0.7, dtype=torch.float64)).score(edges)
    close(score, 0.7 - 0.5 * (p[edges.i] - q[edges.j]).square().sum(-1))
    close(squared_distance(p, q).score(edges), score - 0.7)


@pytest.mark.slow
@normalisers
def test_kernels_equal_the_loops(kernels: str, normalise: Normaliser) -> None:
    edges = ragged(weighted=True)
    p, q, z = (x.detach() for x in inputs(6))
    weights = weights_by_loops(lambda i, j, h: float(p[i, h] @ q[j, h]), edges, normalise, heads=3)
    pair = PairScore(p.to(kernels), q.to(kernels))
    close(attend(pair, z.to(kernels), edges.to(kernels), normalise=normalise).cpu(), dense(weights, edges) @ z)


@pytest.mark.parametrize(
    ("normalise", "f", "heads"),
    [
        (Rows(softmax_link), identity, 1),
        pytest.param(Rows(squareplus_link), Leaky(0.2), 3, marks=pytest.mark.slow),
        pytest.param(Columns(softmax_link), Leaky(0.2), 2, marks=pytest.mark.slow),
        pytest.param(Both(softmax_link), identity, 3, marks=pytest.mark.slow),
        pytest.param(Rows(softmax_link), exponential, 8, marks=pytest.mark.slow),
        pytest.param(Columns(squareplus_link), identity, 1, marks=pytest.mark.slow),
        pytest.param(Both(squareplus_link), exponential, 2, marks=pytest.mark.slow),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
def test_kernels_equal_the_reference_on_a_graph_with_hubs(
    kernels: str, normalise: Normaliser, f: attention.Activation, heads: int
) -> None:
    assert_kernels_equal_the_reference(lambda: with_derivatives(crowd(), kernels, normalise, heads=heads, f=f))


@pytest.mark.slow
def test_several_heads_may_be_summed_in_one_pass(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beltrami.graph.ops.triton.attention_forward.ONE_PASS", 1024)
    assert_kernels_equal_the_reference(lambda: with_derivatives(crowd(), kernels, Rows(), heads=3))


@pytest.mark.slow
@pytest.mark.parametrize("heads", [1, 2])
def test_tiles_of_full_size_are_right(kernels: str, heads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert_kernels_equal_the_reference(lambda: with_derivatives(crowd(), kernels, Rows(), heads=heads))


@pytest.mark.gpu
@normalisers
@pytest.mark.parametrize("heads", [1, 8])
def test_kernels_are_right_on_a_larger_graph(normalise: Normaliser, heads: int) -> None:
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(0, 2000, (2, 24000), generator=generator)
    edge_index[1, :3000] = 7  # a hub that receives
    edge_index[0, 3000:5000] = 11  # and one that sends
    edges = Edges.build(edge_index, num_nodes=2000)
    assert_kernels_equal_the_reference(lambda: with_derivatives(edges, "cuda", normalise, heads=heads))


@pytest.mark.slow
@pytest.mark.parametrize("normalise", [Rows(), Columns(squareplus_link), Both()], ids=repr)
@pytest.mark.parametrize("edges", [GRAPHS["bare"], alone(loop=False), alone(loop=True)], ids=["bare", "alone", "loop"])
def test_kernels_are_right_on_graphs_without_edges_or_of_one_node(
    kernels: str, normalise: Normaliser, edges: Edges
) -> None:
    assert_kernels_equal_the_reference(lambda: with_derivatives(edges, kernels, normalise))


@pytest.mark.slow
@pytest.mark.parametrize("link", [softmax_link, squareplus_link])
@pytest.mark.parametrize("scale", [1e-9, 1e4, 1e200])
def test_scores_of_any_size_give_finite_results(kernels: str, link: Callable[[Tensor], Tensor], scale: float) -> None:
    def run() -> tuple[Tensor, ...]:
        p, q, z = (x.detach() for x in inputs(4, 1, kernels))
        return (attend(PairScore(scale * p, q), z, GRAPHS["kite"].to(kernels), normalise=Rows(link)),)

    assert bool(torch.isfinite(run()[0]).all())
    assert_kernels_equal_the_reference(run)


@pytest.mark.slow
@pytest.mark.parametrize("normalise", [Rows(), Both(squareplus_link)], ids=repr)
def test_second_derivatives_equal_those_of_the_reference(kernels: str, normalise: Normaliser) -> None:
    def run() -> tuple[Tensor, ...]:
        p, _, z = inputs(4, 1, kernels)
        pair = PairScore(p, (0.3 * z[:, None, :2]).sin())  # q from z, as in diffusivities
        out = attend(pair, z, GRAPHS["kite"].to(kernels), normalise=normalise)
        first = torch.autograd.grad(out.sin().sum(), (p, z), create_graph=True)
        second = torch.autograd.grad(first[0].square().sum() + first[1].square().sum(), (p, z))
        return (*first, *second)

    assert_kernels_equal_the_reference(run)


@pytest.mark.slow
def test_gradients_of_some_inputs_equal_those_of_all(kernels: str) -> None:
    edges, (p, q, z) = GRAPHS["kite"].to(kernels), inputs(4, 2, kernels)
    whole = torch.autograd.grad(attend(PairScore(p, q), z, edges, normalise=Rows()).sin().sum(), (p, q, z))
    alone = attend(PairScore(p.detach(), q.detach()), z, edges, normalise=Rows()).sin().sum()
    close(torch.autograd.grad(alone, z)[0], whole[2])
    alone = attend(PairScore(p, q.detach()), z.detach(), edges, normalise=Rows()).sin().sum()
    close(torch.autograd.grad(alone, p, create_graph=True)[0], whole[0])


def test_short_storage_rounds_the_inputs_and_not_the_sums(kernels: str) -> None:
    edges, (p, q, z) = ragged().to(kernels), (x.detach().float() for x in inputs(6, 2, kernels))
    short = [x.bfloat16().double() for x in (p, q, z)]
    found = attend(PairScore(p, q), z, edges, normalise=Rows(), storage=torch.bfloat16)
    assert found.dtype == torch.float32
    wanted = attend(PairScore(short[0], short[1]), short[2], edges, normalise=Rows())
    torch.testing.assert_close(found.double(), wanted, atol=5e-6, rtol=5e-6)  # single precision; bf16 would be 4e-3


@pytest.mark.slow
def test_short_storage_rounds_the_inputs_of_the_backward_pass_too(kernels: str) -> None:
    edges, (p, q, z) = ragged().to(kernels), (x.detach().float().requires_grad_() for x in inputs(6, 2, kernels))
    exact = torch.autograd.grad(attend(PairScore(p, q), z, edges, normalise=Rows()).square().sum(), (p, q, z))
    out = attend(PairScore(p, q), z, edges, normalise=Rows(), storage=torch.bfloat16)
    for rounded, right in zip(torch.autograd.grad(out.square().sum(), (p, q, z)), exact, strict=True):
        assert rounded.dtype == torch.float32
        assert 0 < float((rounded - right).norm() / right.norm()) < 2e-2


@pytest.mark.slow
def test_attention_gives_the_same_bits_every_time(kernels: str) -> None:
    edges, (p, q, z) = crowd().to(kernels), (x.detach().float().requires_grad_() for x in inputs(9, 1, kernels))

    def once() -> tuple[Tensor, ...]:
        out = attend(PairScore(p, q), z, edges, normalise=Rows())
        return (out, *torch.autograd.grad(out.square().sum(), (p, q, z)))

    assert all(torch.equal(x, y) for x, y in zip(once(), once(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("odd", ["activation", "normaliser", "link", "weight", "width"])
def test_attention_without_a_kernel_takes_plain_operations(
    kernels: str, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Half(Rows):
        def log_total(self, log_weight: Tensor, edges: Edges) -> Tensor:
            return super().log_total(log_weight, edges) + 1

    edges, (p, q, z) = ragged(weighted=True).to(kernels), inputs(6, 1, kernels)
    normalise: Normaliser = Half() if odd == "normaliser" else Rows(torch.sin) if odd == "link" else Rows()
    if odd == "weight":
        assert edges.weight is not None
        edges.weight.requires_grad_()
    if odd == "width":
        monkeypatch.setattr(attention, "MAX_WIDTH", 1)
    pair = PairScore(p, q, torch.tanh if odd == "activation" else identity)
    assert "_Attend" not in str(attend(pair, z, edges, normalise=normalise).grad_fn)
    weights = normalise(pair.score(edges), edges)[:, 0]
    with ops.use("reference"):
        close(attend(pair, z, edges, normalise=normalise), dense(weights, edges) @ z)


@pytest.mark.slow
def test_attention_with_stored_weights_is_that_without(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without = with_derivatives(crowd(), kernels, Both(squareplus_link))
    monkeypatch.setattr(attention, "MAX_STORED", 2**20)
    for x, y in zip(with_derivatives(crowd(), kernels, Both(squareplus_link)), without, strict=True):
        close(x, y)
