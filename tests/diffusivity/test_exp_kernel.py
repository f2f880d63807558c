"""The exponential kernel against loops from eq. (17)."""

import math

import pytest
import torch
from checks import NORMALISERS, kite, make, normal, ragged, weights_by_loops
from torch import Tensor

from beltrami.diffusivity import ExpKernel
from beltrami.diffusivity.base import Projection
from beltrami.graph import Edges, Normaliser
from beltrami.joint import Joint

every = pytest.mark.parametrize("edges", [kite(), ragged(), ragged(weighted=True)], ids=["kite", "ragged", "weighted"])


def distance2(key: Tensor, query: Tensor, here: Tensor, there: Tensor) -> float:
    """|W_K here - W_Q there|^2 by the sums that define it."""
    total = 0.0
    for w_k, w_q in zip(key.tolist(), query.tolist(), strict=True):
        p = sum(w * c for w, c in zip(w_k, here.tolist(), strict=True))
        q = sum(w * c for w, c in zip(w_q, there.tolist(), strict=True))
        total += (p - q) ** 2
    return total


def matrices(a: ExpKernel, part: str) -> tuple[Tensor, Tensor]:
    """W_K and W_Q of u or of x."""
    project = a.project[part]
    assert isinstance(project, Projection)
    return project.key.weight, project.query.weight


def set_scales(a: ExpKernel) -> dict[str, tuple[float, float]]:
    """sigma and ell of each part, different from each other and from one."""
    scales = {"u": (1.3, 0.8), "x": (0.6, 1.7)}
    with torch.no_grad():
        for name in a.project:
            a.log_sigma[name].fill_(math.log(scales[name][0]))
            a.log_length[name].fill_(math.log(scales[name][1]))
    return scales


@every
@pytest.mark.parametrize("normalise", NORMALISERS, ids=repr)
@pytest.mark.parametrize("heads", [1, 3])
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


def test_every_scale_and_length_learns() -> None:
    a, z, edges = make("ExpKernel"), normal(4, 5), kite()
    a(z, edges).square().sum().backward()
    for name, parameter in a.named_parameters():
        assert parameter.grad is not None, name
        assert float(parameter.grad.abs().max()) > 1e-6, name


def test_a_state_of_another_width_is_refused() -> None:
    with pytest.raises(ValueError, match="got a state with 4 channels"):
        make("ExpKernel")(normal(4, 4), kite())
