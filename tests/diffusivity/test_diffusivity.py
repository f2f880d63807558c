"""Checks that every diffusivity must pass, initialisation, spread, and the random walk."""

from dataclasses import replace

import pytest
import torch
from checks import (
    DIFFUSIVITIES,
    GRAPHS,
    JOINT,
    LEARNED,
    NORMALISERS,
    SOME_NORMALISERS,
    bare,
    check_derivatives,
    check_no_edges_do_no_harm,
    check_relabelling_commutes,
    check_weights_are_normalised,
    dense,
    kite,
    make,
    normal,
    pairs,
    ragged,
)
from torch import nn
from torch.autograd import gradcheck

from beltrami.diffusivity import (
    Additive,
    Cosine,
    Diffusivity,
    ExpKernel,
    Gaussian,
    Mixture,
    Pearson,
    RandomWalk,
    ScaledDot,
    WithEdgeFeatures,
    constant,
    xavier,
)
from beltrami.diffusivity.base import Projection
from beltrami.graph import Both, Columns, Edges, Link, Normaliser, Rows, softmax_link, squareplus_link
from beltrami.model.coder import reset_parameters

every_diffusivity = pytest.mark.parametrize("name", DIFFUSIVITIES)
some_normalisers = pytest.mark.parametrize("normalise", SOME_NORMALISERS, ids=repr)
links = pytest.mark.parametrize("link", [softmax_link, squareplus_link])


@pytest.mark.slow
@every_diffusivity
@pytest.mark.parametrize("normalise", NORMALISERS, ids=repr)
def test_weights_are_normalised(name: str, normalise: Normaliser) -> None:
    for edges in GRAPHS.values():
        check_weights_are_normalised(make(name, normalise, heads=3), edges)


@pytest.mark.slow
@every_diffusivity
@some_normalisers
def test_relabelling_the_nodes_relabels_the_weights(name: str, normalise: Normaliser) -> None:
    for edges in GRAPHS.values():
        check_relabelling_commutes(make(name, normalise, heads=2), edges)


@pytest.mark.slow
@every_diffusivity
@some_normalisers
def test_derivatives_by_state_and_parameters(name: str, normalise: Normaliser) -> None:
    check_derivatives(make(name, normalise, heads=1), kite())


@pytest.mark.slow
@every_diffusivity
def test_derivatives_with_heads_on_a_directed_graph(name: str) -> None:
    check_derivatives(make(name, heads=2), ragged())


@pytest.mark.slow
@every_diffusivity
@some_normalisers
def test_nodes_without_edges_do_no_harm(name: str, normalise: Normaliser) -> None:
    for edges in (ragged(weighted=True), bare()):
        check_no_edges_do_no_harm(make(name, normalise, heads=2), edges)


@every_diffusivity
def test_single_precision_stays_single(name: str) -> None:
    edges, z = ragged(weighted=True), normal(6, JOINT.channels)
    found = make(name).float()(z.float(), edges)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), make(name)(z, edges), atol=1e-5, rtol=1e-5)


@every_diffusivity
def test_the_mean_over_heads_comes_after_the_normaliser(name: str) -> None:
    edges, z, a = kite(), normal(4, JOINT.channels), make(name, heads=3)
    heads = a.normalise(a.score(z, edges), edges)
    assert heads.shape == (8, 1 if isinstance(a, RandomWalk | Mixture) else 3)
    torch.testing.assert_close(a(z, edges), heads.mean(1))
    if not isinstance(a, RandomWalk | Mixture):
        before = a.normalise(a.score(z, edges).mean(1, keepdim=True), edges)[:, 0]
        assert not torch.allclose(before, heads.mean(1), atol=1e-6)


@every_diffusivity
@pytest.mark.parametrize("edges", [kite(), ragged()], ids=["kite", "ragged"])
def test_spread_is_the_deviation_of_weight_times_degree(name: str, edges: Edges) -> None:
    z, a = normal(edges.num_nodes, JOINT.channels), make(name)
    degree = edges.in_degree().tolist()
    shares = [w * degree[i] for w, (i, _) in zip(a(z, edges).tolist(), pairs(edges), strict=True)]
    mean = sum(shares) / len(shares)
    deviation = (sum((share - mean) ** 2 for share in shares) / len(shares)) ** 0.5
    assert a.spread(z.requires_grad_(), edges) == pytest.approx(deviation, abs=1e-12)
    assert a.spread(z[:4], bare()) == 0.0


@pytest.mark.parametrize("normalise", NORMALISERS, ids=repr)
def test_the_random_walk_has_no_spread_and_learned_weights_have_some(normalise: Normaliser) -> None:
    edges = ragged(weighted=True)
    assert make("RandomWalk", normalise).spread(normal(6, JOINT.channels), edges) == pytest.approx(0.0, abs=1e-12)
    assert all(make(name, normalise).spread(normal(4, JOINT.channels), kite()) > 1e-3 for name in LEARNED)


@pytest.mark.parametrize("name", ["ScaledDot", "ExpKernel", "Additive"])
@some_normalisers
def test_the_papers_constant_initialisation_is_nearly_uniform(name: str, normalise: Normaliser) -> None:
    a = make(name, normalise, heads=2, start=constant())
    assert a.spread(normal(4, JOINT.channels), kite()) < 1e-6


def test_the_constant_initialisation_leaves_only_the_sign_of_a_cosine() -> None:
    """Eq. (15) does not depend on the size of the weights: equal rows of W make every score one or minus one."""
    z, edges = normal(4, JOINT.channels), kite()
    score = make("Cosine", start=constant()).score(z, edges)[:, 0]
    signs = z.sum(1).sign()
    torch.testing.assert_close(score, signs[edges.i] * signs[edges.j])


def test_initialisations_fill_their_argument() -> None:
    weight = torch.zeros(40, 10)
    assert constant(0.5)(weight).unique().tolist() == [0.5]
    assert constant()(weight).unique().tolist() == pytest.approx([1e-5])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        xavier(weight)
    bound = (6 / 50) ** 0.5
    assert 0.9 * bound < float(weight.abs().max()) <= bound


def test_projections_divide_the_width_into_heads() -> None:
    project, z = Projection(5, 6, heads=3, start=nn.init.ones_).double(), normal(4, 5)
    key, query = project(z)
    assert key.shape == query.shape == (4, 3, 2)
    torch.testing.assert_close(key, z.sum(1)[:, None, None].expand(4, 3, 2))


@pytest.mark.parametrize(("width", "heads"), [(7, 2), (4, 0), (4, -1), (2, 3)])
def test_a_width_that_the_heads_do_not_divide_is_refused(width: int, heads: int) -> None:
    message = f"multiple of `heads`; got width={width}, heads={heads}"
    for diffusivity in (ScaledDot, Cosine, Pearson, Additive):
        with pytest.raises(ValueError, match=message):
            diffusivity(5, width, heads=heads)
    with pytest.raises(ValueError, match=message):
        ExpKernel(JOINT, width, heads=heads)


def test_print_shows_the_settings() -> None:
    shown = repr(ScaledDot(5, 8, heads=2, d_k=3.0, normalise=Both(squareplus_link)))
    assert "ScaledDot(\n  normalise=Both(squareplus_link), d_k=3.0\n  (project): Projection(\n    heads=2" in shown


@links
def test_rows_are_the_transition_matrix_of_the_random_walk(link: Link) -> None:
    edges = kite()
    adjacency = dense(torch.ones(8, dtype=torch.float64), edges)
    found = dense(RandomWalk(Rows(link))(normal(4, 2), edges), edges)
    torch.testing.assert_close(found, adjacency / adjacency.sum(1, keepdim=True))
    assert isinstance(RandomWalk().normalise, Rows)  # the default


@links
def test_the_random_walk_follows_the_edge_weights(link: Link) -> None:
    edges = ragged(weighted=True)
    assert edges.weight is not None
    w = edges.weight.tolist()
    for over in (Rows, Columns):
        found = RandomWalk(over(link))(normal(6, 2), edges)
        for e, (i, j) in enumerate(pairs(edges)):
            group = [w[k] for k, (p, q) in enumerate(pairs(edges)) if (p == i if over is Rows else q == j)]
            assert float(found[e]) == pytest.approx(w[e] / sum(group), abs=1e-14)


def test_the_random_walk_with_both_and_loops_is_the_operator_of_gcn() -> None:
    edges = kite().with_loops(1.0)
    adjacency = dense(torch.ones(12, dtype=torch.float64), edges)
    root = adjacency.sum(1).rsqrt()
    found = dense(RandomWalk(Both())(normal(4, 2), edges), edges)
    torch.testing.assert_close(found, root[:, None] * adjacency * root)


def test_the_random_walk_ignores_the_state_and_has_no_parameters() -> None:
    edges, a = kite(), RandomWalk()
    assert torch.equal(a(normal(4, 2), edges), a(100 * normal(4, 7, seed=1), edges))
    assert list(a.parameters()) == []


def with_features(*, heads: int = 2) -> tuple[WithEdgeFeatures, Edges]:
    """A scaled dot product with a term of three edge features, on a directed graph with parallel edges and weights."""
    edges = replace(ragged(weighted=True), features=normal(9, 3, seed=5))
    torch.manual_seed(0)
    return WithEdgeFeatures(ScaledDot(JOINT.channels, 4 * heads, heads=heads), 3, heads=heads).double(), edges


@pytest.mark.parametrize("heads", [1, 2])
def test_a_term_of_edge_features_equals_a_double_loop(heads: int) -> None:
    a, edges = with_features(heads=heads)
    z, inner = normal(6, JOINT.channels), a.diffusivity
    assert isinstance(inner, ScaledDot)
    assert edges.weight is not None
    assert edges.features is not None
    key, query = (linear.weight.reshape(heads, 4, -1) for linear in (inner.project.key, inner.project.query))
    terms = torch.zeros(edges.num_edges, heads, dtype=torch.float64)
    for e in range(edges.num_edges):
        for h in range(heads):
            i, j = int(edges.i[e]), int(edges.j[e])
            score = (key[h] @ z[i]) @ (query[h] @ z[j]) / 4 + a.term.weight[h] @ edges.features[e]
            terms[e, h] = edges.weight[e] * score.exp()
    expected = torch.zeros(edges.num_edges, dtype=torch.float64)
    for e in range(edges.num_edges):
        entering = [k for k in range(edges.num_edges) if edges.i[k] == edges.i[e]]
        expected[e] = sum(terms[e, h] / terms[entering, h].sum() for h in range(heads)) / heads
    torch.testing.assert_close(a(z, edges), expected)


@pytest.mark.slow
def test_derivatives_of_a_term_of_edge_features() -> None:
    a, edges = with_features()
    check_derivatives(a, edges)
    assert edges.features is not None
    assert gradcheck(
        lambda e: a(normal(6, JOINT.channels), replace(edges, features=e)), edges.features.clone().requires_grad_()
    )


def test_missing_edge_features_are_refused() -> None:
    a, edges = with_features()
    z = normal(6, JOINT.channels)
    with pytest.raises(ValueError, match="needs edge features of 3 columns, `edge_attr`; got none"):
        a(z, ragged())
    with pytest.raises(ValueError, match="needs edge features of 3 columns, `edge_attr`; got 2 columns"):
        a(z, replace(edges, features=normal(9, 2)))


@pytest.mark.parametrize("name", [*LEARNED, "Gaussian", "WithEdgeFeatures"])
def test_reset_parameters_begins_anew(name: str) -> None:
    a: Diffusivity
    if name == "Gaussian":
        a = Gaussian(JOINT, heads=2)
    else:
        a = with_features()[0] if name == "WithEdgeFeatures" else make(name, heads=2)
    for parameter in a.parameters():
        nn.init.constant_(parameter, 77.0)
    reset_parameters(nn.ModuleList([a]))
    assert all((parameter.abs() < 10).all() for parameter in a.parameters())
