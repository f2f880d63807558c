"""Diffusivities from distances: the exponential kernel of eq. (17), the Gaussian and the mixture, against loops."""

import math

import pytest
import torch
from checks import JOINT, crooked, kite, make, normal, pairs, ragged, weights_by_loops
from torch import Tensor
from torch.autograd import gradcheck

from beltrami.diffusivity import ExpKernel, Gaussian, Mixture
from beltrami.diffusivity.base import Projection
from beltrami.diffusivity.distance import edge_distance2
from beltrami.geometry import Euclidean, Metric, PoincareBall
from beltrami.graph import Both, Columns, Edges, Normaliser, Rows, squareplus_link
from beltrami.joint import Joint

EDGES = Edges.build(torch.tensor([[0, 1, 2, 3, 0, 2], [1, 0, 1, 2, 3, 3]]), num_nodes=4)


def distance2(key: Tensor, query: Tensor, here: Tensor, there: Tensor) -> float:
    """Return |W_K here - W_Q there|^2 by the sums that define it."""
    total = 0.0
    for w_k, w_q in zip(key.tolist(), query.tolist(), strict=True):
        p = sum(w * c for w, c in zip(w_k, here.tolist(), strict=True))
        q = sum(w * c for w, c in zip(w_q, there.tolist(), strict=True))
        total += (p - q) ** 2
    return total


def matrices(a: ExpKernel, part: str) -> tuple[Tensor, Tensor]:
    """Return W_K and W_Q of u or of x."""
    project = a.project[part]
    assert isinstance(project, Projection)
    return project.key.weight, project.query.weight


def set_scales(a: ExpKernel) -> dict[str, tuple[float, float]]:
    """Set sigma and ell of each part to different values, and return them."""
    scales = {"u": (1.3, 0.8), "x": (0.6, 1.7)}
    with torch.no_grad():
        for name in a.project:
            a.log_sigma[name].fill_(math.log(scales[name][0]))
            a.log_length[name].fill_(math.log(scales[name][1]))
    return scales


@pytest.mark.parametrize(
    ("edges", "normalise", "heads"),
    [
        (kite(), Rows(), 1),
        (ragged(), Columns(squareplus_link), 3),
        (ragged(weighted=True), Both(), 3),
        (ragged(weighted=True), Rows(squareplus_link), 1),
    ],
    ids=["kite", "ragged", "weighted", "squareplus"],
)
def test_exp_kernel_is_eq_17(edges: Edges, normalise: Normaliser, heads: int) -> None:
    a, z = make("ExpKernel", normalise, heads=heads), normal(edges.num_nodes, 5)
    assert isinstance(a, ExpKernel)
    scales = set_scales(a)
    coordinates = {"u": z[:, :2], "x": z[:, 2:]}

    def score(i: int, j: int, head: int) -> float:
        value = 1.0
        for name, part in coordinates.items():
            rows = slice(4 * head, 4 * head + 4)
            key, query = matrices(a, name)
            squared = distance2(key[rows], query[rows], part[i], part[j])
            sigma, length = scales[name]
            value *= sigma**2 * math.exp(-squared / (2 * length**2))
        return value

    torch.testing.assert_close(a(z, edges), weights_by_loops(score, edges, normalise, heads=heads))


def test_scores_lie_between_zero_and_the_squared_product_of_the_sigmas() -> None:
    a, edges = make("ExpKernel", heads=2), kite()
    assert isinstance(a, ExpKernel)
    set_scales(a)
    for scale in (0.0, 1.0, 100.0):
        score = a.score(scale * normal(4, 5), edges).detach()
        assert float(score.min()) >= 0.0
        assert float(score.max()) <= (1.3 * 0.6) ** 2 + 1e-12
    torch.testing.assert_close(
        a.score(torch.zeros(4, 5, dtype=torch.float64), edges), torch.full((8, 2), (1.3 * 0.6) ** 2).double()
    )


@pytest.mark.parametrize(("joint", "part"), [(Joint(0, 5), "x"), (Joint(5, 0), "u")])
def test_without_one_part_only_the_other_factor_remains(joint: Joint, part: str) -> None:
    a, edges, z = ExpKernel(joint, 4).double(), kite(), normal(4, 5)
    assert list(a.project) == list(a.log_sigma) == list(a.log_length) == [part]
    key, query = matrices(a, part)
    p, q = z @ key.T, z @ query.T
    torch.testing.assert_close(a.score(z, edges)[:, 0], (-(p[edges.i] - q[edges.j]).square().sum(1) / 2).exp())


def test_all_parameters_of_the_exp_kernel_receive_gradients() -> None:
    a, z, edges = make("ExpKernel"), normal(4, 5), kite()
    a(z, edges).square().sum().backward()
    for name, parameter in a.named_parameters():
        assert parameter.grad is not None, name
        assert float(parameter.grad.abs().max()) > 1e-6, name


def test_a_state_of_the_wrong_width_is_refused() -> None:
    with pytest.raises(ValueError, match=r"splits `z` \(n, 5\); got \(4, 4\)"):
        make("ExpKernel")(normal(4, 4), kite())


def state() -> Tensor:
    return torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("metric", [Euclidean(), PoincareBall(), PoincareBall(0.5)], ids=repr)
def test_gaussian_is_its_equation(metric: Metric) -> None:
    z, lengths = state(), (0.7, 1.4)
    a = Gaussian(JOINT, metric=metric, heads=2, length=0.7).double()(z, EDGES).detach()
    points = [metric.exp(torch.zeros(2, dtype=torch.float64), z[i, :2]) for i in range(4)]

    def weight(i: int, j: int, length: float) -> float:
        apart = float(metric.distance(points[i], points[j]))
        return math.exp(-(apart**2 + float((z[i, 2:] - z[j, 2:]).square().sum())) / (2 * length**2))

    for e, (j, i) in enumerate(EDGES.edge_index.T.tolist()):
        near = [k for k, receiver in EDGES.edge_index.T.tolist() if receiver == i]
        heads = [weight(i, j, length) / sum(weight(i, k, length) for k in near) for length in lengths]
        assert float(a[e]) == pytest.approx(sum(heads) / 2, rel=1e-6)


@pytest.mark.parametrize("joint", [Joint(2, 3), Joint(5, 0), Joint(0, 5)])
def test_gaussian_without_one_part_uses_the_other(joint: Joint) -> None:
    diffusivity = Gaussian(joint, metric=PoincareBall(), heads=3)
    assert sum(p.numel() for p in diffusivity.parameters()) == 3 * ((joint.pos > 0) + (joint.feat > 0))
    z = state().requires_grad_()
    assert gradcheck(lambda z: diffusivity.double()(z, EDGES), (z,))


def test_a_length_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="positive, finite `length`"):
        Gaussian(JOINT, length=0.0)


def test_mixture_is_the_double_loop() -> None:
    edges, z = crooked(), normal(6, JOINT.channels)
    a = Mixture(JOINT, kernels=2).double()
    with torch.no_grad():
        a.log_sigma.copy_(normal(2, 2, seed=4))
    mu, sigma = a.mu.tolist(), a.log_sigma.exp().tolist()

    def w(i: int, j: int) -> float:
        e = (z[j, :2] - z[i, :2]).tolist()
        return sum(math.exp(-0.5 * sum(((e[c] - mu[k][c]) / sigma[k][c]) ** 2 for c in range(2))) for k in range(2))

    found = a(z, edges)
    for weight, (i, j) in zip(found, pairs(edges), strict=True):
        total = sum(w(i, sender) for receiver, sender in pairs(edges) if receiver == i)
        assert weight.item() == pytest.approx(w(i, j) / total, rel=1e-9)


def test_the_mixture_ignores_the_features() -> None:
    edges, z, a = crooked(), normal(6, JOINT.channels), Mixture(JOINT, kernels=2).double()
    other = JOINT.join(z[:, JOINT.u], normal(6, JOINT.feat, seed=7))
    assert torch.equal(a(z, edges), a(other, edges))


def test_a_mixture_without_positions_or_kernels_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`joint` has none: use `RandomWalk`"):
        Mixture(Joint(0, 3), kernels=2)
    with pytest.raises(ValueError, match=r"`kernels` at least 1 and below .*; got 0"):
        Mixture(JOINT, kernels=0)


def test_squared_distances_of_edges_are_never_negative() -> None:
    edges = kite()
    p, q = normal(4, 2, 3), normal(4, 2, 3, seed=1)
    torch.testing.assert_close(edge_distance2(p, q, edges), (p[edges.i] - q[edges.j]).square().sum(-1))
    same = (1e3 + torch.rand(1, 2, 3, generator=torch.Generator().manual_seed(0))).expand(4, 2, 3).contiguous()
    assert float(edge_distance2(same, same, edges).min()) >= 0.0
