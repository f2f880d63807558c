"""Fused attention weights against loops and plain operations: values and derivatives."""

from functools import partial

import pytest
import torch
from checks import NORMALISERS, crowd, normal, ragged, weights_by_loops
from torch import Tensor

from beltrami.graph import (
    Both,
    Columns,
    Edges,
    Leaky,
    Normaliser,
    PairScore,
    Rows,
    exponential,
    identity,
    ops,
    softmax_link,
    squareplus_link,
)
from beltrami.graph.ops.attention import Activation
from beltrami.graph.ops.edge_weights import fused_weights

close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)


def sides(nodes: int, heads: int, device: str) -> tuple[Tensor, Tensor]:
    """p and q, (nodes, heads, 2)."""
    p, q = (normal(nodes, heads, 2, seed=s).to(device).requires_grad_() for s in (1, 2))
    return p, q


def fused(pair: PairScore, edges: Edges, normalise: Normaliser) -> Tensor:
    weights = fused_weights(pair, edges, normalise=normalise)
    assert weights is not None
    return weights


@pytest.mark.parametrize("normalise", NORMALISERS, ids=repr)
def test_weights_are_the_mean_over_heads_by_loops(kernels: str, normalise: Normaliser) -> None:
    edges, (p, q) = ragged(weighted=True), sides(6, 3, kernels)
    a, b = p.detach().cpu(), q.detach().cpu()
    expected = weights_by_loops(lambda i, j, h: float(a[i, h] @ b[j, h]), edges, normalise, heads=3)
    close(fused(PairScore(p, q), edges.to(kernels), normalise).detach().cpu(), expected)


@pytest.mark.parametrize(
    ("normalise", "f", "heads"),
    [
        (Rows(softmax_link), identity, 1),
        pytest.param(Columns(softmax_link), Leaky(0.2), 2, marks=pytest.mark.slow),
        pytest.param(Both(squareplus_link), exponential, 3, marks=pytest.mark.slow),
        pytest.param(Rows(squareplus_link), identity, 8, marks=pytest.mark.slow),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
def test_derivatives_are_those_of_plain_operations(
    kernels: str, normalise: Normaliser, f: Activation, heads: int
) -> None:
    edges = crowd().to(kernels)
    p, q = sides(edges.num_nodes, heads, kernels)
    g = normal(edges.num_edges, seed=7).to(kernels)
    found = fused(PairScore(p, q, f), edges, normalise)
    plain = normalise(PairScore(p, q, f).score(edges), edges).mean(-1)
    close(found, plain)
    for one, other in zip(
        torch.autograd.grad(found, (p, q), g, retain_graph=True), torch.autograd.grad(plain, (p, q), g), strict=True
    ):
        close(one, other)


@pytest.mark.slow
def test_second_derivatives_are_those_of_plain_operations(kernels: str) -> None:
    edges, (p, q) = ragged().to(kernels), sides(6, 2, kernels)
    g = normal(edges.num_edges, seed=7).to(kernels)
    plain = Rows()(PairScore(p, q).score(edges), edges).mean(-1)
    second = []
    for weights in (fused(PairScore(p, q), edges, Rows()), plain):
        first = torch.autograd.grad((weights * g).square().sum(), (p, q), create_graph=True)
        second.append(torch.autograd.grad(torch.stack([x.square().sum() for x in first]).sum(), (p, q)))
    for one, other in zip(*second, strict=True):
        close(one, other)


def test_no_kernel_serves_on_a_cpu_or_for_an_unknown_activation(kernels: str) -> None:
    edges, (p, q) = ragged().to(kernels), sides(6, 2, kernels)
    assert fused_weights(PairScore(p, q, torch.tanh), edges, normalise=Rows()) is None
    with ops.use("reference"):
        assert fused_weights(PairScore(p, q), edges, normalise=Rows()) is None
