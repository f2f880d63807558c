"""The Beltrami flow in one pass equals weights first and the product after, up to rounding."""

from functools import partial

import pytest
import torch
from checks import GRAPHS, JOINT, LEARNED, SOME_NORMALISERS, crooked, crowd, make, normal, ragged
from torch import Tensor

from beltrami.diffusivity import Diffusivity, Gaussian, Paired, RandomWalk, ScaledDot
from beltrami.flow import BeltramiFlow, JacobianNorm, LinearFlow, Rate
from beltrami.flow.cost import Costed
from beltrami.geometry import PoincareBall
from beltrami.graph import Both, Edges, Normaliser, Rows, aggregate, ops, squareplus_link
from beltrami.scheme import Exponential, solve

close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)
PAIRED = [name for name in LEARNED if isinstance(make(name), Paired)]


def gaussian(normalise: Normaliser | None = None) -> Diffusivity:
    return Gaussian(JOINT, length=1.3, normalise=normalise).double()


def two_steps(a: Diffusivity, z: Tensor, edges: Edges) -> Tensor:
    """Return A(z) z - z by way of the weights on the edges."""
    return aggregate(a(z, edges), z, edges) - a.normalise.connected(edges).to(z.dtype)[:, None] * z


def with_derivatives(out: Tensor, a: Diffusivity, z: Tensor) -> tuple[Tensor, ...]:
    weights = normal(*out.shape, seed=9).to(out.device)
    return (out, *torch.autograd.grad((weights * out).sum(), (z, *a.parameters())))


@pytest.mark.parametrize("name", PAIRED)
@pytest.mark.parametrize("heads", [1, 2])
def test_the_pair_of_a_diffusivity_has_its_score(name: str, heads: int) -> None:
    a = make(name, heads=heads)
    assert isinstance(a, Paired)
    for edges in GRAPHS.values():
        z = normal(edges.num_nodes, 5)
        pair = a.pair(z)
        assert pair is not None
        close(pair.score(edges), a.score(z, edges))


def test_the_gaussian_has_a_pair_for_one_head_in_flat_space() -> None:
    a, z, edges = gaussian(), normal(6, 5), ragged()
    assert isinstance(a, Gaussian)
    pair = a.pair(z)
    assert pair is not None
    close(pair.score(edges), a.score(z, edges))
    assert Gaussian(JOINT, heads=2).pair(z) is None
    assert Gaussian(JOINT, metric=PoincareBall()).pair(z) is None


@pytest.mark.parametrize("normalise", SOME_NORMALISERS, ids=repr)
@pytest.mark.parametrize("name", [*PAIRED, "Gaussian", "RandomWalk"])
def test_the_flow_is_weights_first_and_the_product_after(name: str, normalise: Normaliser) -> None:
    edges, z = ragged(weighted=True), normal(6, 5).requires_grad_()
    a = gaussian(normalise) if name == "Gaussian" else make(name, normalise, heads=2)
    found = with_derivatives(BeltramiFlow(a).bind(z, edges)(0.0, z), a, z)
    for x, y in zip(found, with_derivatives(two_steps(a, z, edges), a, z), strict=True):
        close(x, y)


@pytest.mark.slow
@pytest.mark.parametrize("normalise", [Rows(), Both(squareplus_link)], ids=repr)
@pytest.mark.parametrize("name", ["ScaledDot", "Additive", "ExpKernel", "Gaussian"])  # one for each form of score
def test_the_flow_through_the_kernels_is_the_same(
    kernels: str, name: str, normalise: Normaliser, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges, z = crooked().to(kernels), normal(6, 5).to(kernels).requires_grad_()
    a = (gaussian(normalise) if name == "Gaussian" else make(name, normalise)).to(kernels)
    out = BeltramiFlow(a).bind(z, edges)(0.0, z)
    found = with_derivatives(out, a, z)
    with ops.use("reference"):
        wanted = with_derivatives(two_steps(a, z, edges), a, z)
    for x, y in zip(found, wanted, strict=True):
        close(x, y)


@pytest.mark.slow
def test_the_jacobian_cost_differentiates_twice_through_the_kernels(kernels: str) -> None:
    edges, z = GRAPHS["kite"].to(kernels), normal(4, 5).to(kernels)
    a = make("ScaledDot").to(kernels)

    def run() -> tuple[Tensor, ...]:
        generator = torch.Generator(kernels).manual_seed(0)
        f = Costed(BeltramiFlow(a).bind(z, edges), [JacobianNorm(1.0)], z, generator=generator)
        out = f(0.0, f.join(z))
        return (out, *torch.autograd.grad(out.square().sum(), tuple(a.parameters())))

    found = run()
    with ops.use("reference"):
        wanted = run()
    for x, y in zip(found, wanted, strict=True):
        close(x, y)


def test_fixed_weights_have_no_pair() -> None:
    assert not isinstance(RandomWalk(), Paired)


@pytest.mark.slow
def test_a_shorter_storage_changes_little(kernels: str) -> None:
    edges = crowd().to(kernels)
    torch.manual_seed(0)
    diffusivity = ScaledDot(6, 8, heads=2).to(kernels)
    z = normal(edges.num_nodes, 6).float().to(kernels)
    full = BeltramiFlow(diffusivity).bind(z, edges)(0.0, z)
    short = BeltramiFlow(diffusivity, storage=torch.bfloat16).bind(z, edges)(0.0, z)
    error = float((short - full).detach().abs().max() / full.detach().abs().max())
    assert 1e-6 < error < 2e-2


@pytest.mark.slow
def test_a_shorter_storage_of_a_frozen_flow_changes_little(kernels: str) -> None:
    edges, scheme = crowd().to(kernels), Exponential(1e-6, 1e-6)
    torch.manual_seed(0)
    diffusivity = ScaledDot(6, 8, heads=2).to(kernels)
    z = normal(edges.num_nodes, 6).float().to(kernels).requires_grad_()
    found = []
    for storage in (None, torch.bfloat16):
        field = LinearFlow(diffusivity, rate=Rate().to(kernels), storage=storage).bind(z, edges)
        out = solve(field, z, (0.0, 4.0), scheme, field.tensors).ys[-1]
        gradients = torch.autograd.grad(out.square().sum(), (z, *diffusivity.parameters()))
        found.append((out.detach(), *gradients))
    for full, short in zip(*found, strict=True):
        assert short.dtype == torch.float32
        assert 1e-6 < float((short - full).abs().max() / full.abs().max()) < 2e-2
