"""Scaled dot, cosine and Pearson against loops from eqs. (13), (15) and (16)."""

import math

import pytest
import torch
from checks import NORMALISERS, kite, make, normal, ragged, weights_by_loops
from torch import Tensor

from beltrami.diffusivity import Cosine, Pearson, ScaledDot
from beltrami.diffusivity.base import Projection
from beltrami.graph import Edges, Normaliser

every = pytest.mark.parametrize("edges", [kite(), ragged(), ragged(weighted=True)], ids=["kite", "ragged", "weighted"])
normalisers = pytest.mark.parametrize("normalise", NORMALISERS, ids=repr)
some_heads = pytest.mark.parametrize("heads", [1, 3])


def projected(weight: Tensor, z: Tensor, head: int, heads: int) -> list[float]:
    """The rows of W z that belong to one head, by the sums that define them."""
    width = weight.shape[0] // heads
    rows, z_list = weight.tolist()[head * width : (head + 1) * width], z.tolist()
    return [sum(w * c for w, c in zip(row, z_list, strict=True)) for row in rows]


def dot(p: list[float], q: list[float]) -> float:
    return sum(a * b for a, b in zip(p, q, strict=True))


def centred(p: list[float]) -> list[float]:
    return [a - sum(p) / len(p) for a in p]


def key_and_query(project: Projection, z: Tensor, i: int, j: int, head: int) -> tuple[list[float], list[float]]:
    """W_K z_i and W_Q z_j."""
    heads = project.heads
    return projected(project.key.weight, z[i], head, heads), projected(project.query.weight, z[j], head, heads)


@every
@normalisers
@some_heads
def test_scaled_dot_is_eq_13(edges: Edges, normalise: Normaliser, heads: int) -> None:
    a, z = make("ScaledDot", normalise, heads=heads), normal(edges.num_nodes, 5)
    assert isinstance(a, ScaledDot)

    def score(i: int, j: int, head: int) -> float:
        key, query = key_and_query(a.project, z, i, j, head)
        return dot(key, query) / 4  # d_k is the width of one head

    torch.testing.assert_close(a(z, edges), weights_by_loops(score, edges, normalise, heads=heads))


@every
@normalisers
@some_heads
def test_cosine_is_eq_15(edges: Edges, normalise: Normaliser, heads: int) -> None:
    a, z = make("Cosine", normalise, heads=heads), normal(edges.num_nodes, 5)
    assert isinstance(a, Cosine)

    def score(i: int, j: int, head: int) -> float:
        key, query = key_and_query(a.project, z, i, j, head)
        return dot(key, query) / math.sqrt(dot(key, key) * dot(query, query))

    torch.testing.assert_close(a(z, edges), weights_by_loops(score, edges, normalise, heads=heads))


@every
@normalisers
@some_heads
def test_pearson_is_eq_16(edges: Edges, normalise: Normaliser, heads: int) -> None:
    a, z = make("Pearson", normalise, heads=heads), normal(edges.num_nodes, 5)
    assert isinstance(a, Pearson)

    def score(i: int, j: int, head: int) -> float:
        key, query = (centred(p) for p in key_and_query(a.project, z, i, j, head))
        return dot(key, query) / math.sqrt(dot(key, key) * dot(query, query))

    torch.testing.assert_close(a(z, edges), weights_by_loops(score, edges, normalise, heads=heads))


def test_scores_are_divided_by_d_k_and_not_its_root() -> None:
    edges, z = kite(), normal(4, 5)
    by_width, by_one = ScaledDot(5, 16).double(), ScaledDot(5, 16, d_k=1.0).double()
    by_one.load_state_dict(by_width.state_dict())
    torch.testing.assert_close(by_width.score(z, edges), by_one.score(z, edges) / 16)
    assert (by_width.d_k, ScaledDot(5, 16, heads=4).d_k) == (16, 4)


def test_d_k_is_a_hyperparameter() -> None:
    edges, z = kite(), normal(4, 5)
    small, large = ScaledDot(5, 4, d_k=0.5).double(), ScaledDot(5, 4, d_k=1e9).double()
    large.load_state_dict(small.state_dict())
    assert large.spread(z, edges) < 1e-8 < small.spread(z, edges)


@pytest.mark.parametrize("name", ["Cosine", "Pearson"])
def test_bounded_scores_do_not_see_the_scale_of_the_state(name: str) -> None:
    edges, z, a = kite(), normal(4, 5), make(name)
    torch.testing.assert_close(a(1e4 * z, edges), a(z, edges))
    assert float(a.score(1e4 * z, edges).detach().abs().max()) <= 1 + 1e-12


def test_pearson_does_not_see_a_shift_of_all_projected_channels() -> None:
    edges, z, a = kite(), normal(4, 5), make("Pearson")
    assert isinstance(a, Pearson)
    before = a(z, edges)
    with torch.no_grad():  # add to W_K a row of ones times anything: every channel of W_K z moves by the same
        a.project.key.weight += normal(1, 5, seed=7)
    torch.testing.assert_close(a(z, edges), before)


@pytest.mark.parametrize("name", ["Cosine", "Pearson"])
def test_a_state_of_zeros_gives_uniform_weights(name: str) -> None:
    edges, a = kite(), make(name)
    z = torch.zeros(4, 5, dtype=torch.float64, requires_grad=True)
    weights = a(z, edges)
    weights.square().sum().backward()
    torch.testing.assert_close(weights * edges.in_degree()[edges.i], torch.ones(8, dtype=torch.float64))
    assert z.grad is not None
    assert bool(torch.isfinite(z.grad).all())


def test_a_and_its_transpose_differ() -> None:
    """Keys are of receivers, queries of senders: exchanging the two matrices transposes the scores."""
    edges, z, a = kite(), normal(4, 5), make("ScaledDot")
    b = make("ScaledDot")
    assert isinstance(a, ScaledDot)
    assert isinstance(b, ScaledDot)
    b.project.key, b.project.query = b.project.query, b.project.key
    back = torch.tensor([int(((edges.i == j) & (edges.j == i)).nonzero()) for j, i in edges.edge_index.T])
    torch.testing.assert_close(b.score(z, edges), a.score(z, edges)[back])
    assert not torch.allclose(a.score(z, edges), a.score(z, edges)[back])


@pytest.mark.parametrize("d_k", [0.0, -1.0, math.nan])
def test_a_d_k_that_divides_nothing_is_refused(d_k: float) -> None:
    with pytest.raises(ValueError, match="ScaledDot needs a positive `d_k`"):
        ScaledDot(5, 4, d_k=d_k)


def test_pearson_needs_two_channels_a_head() -> None:
    with pytest.raises(ValueError, match="at least two channels a head; got width=3, heads=3"):
        Pearson(5, 3, heads=3)
