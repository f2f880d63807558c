"""The battery that every diffusivity goes through, its start and its spread."""

import pytest
import torch
from checks import (
    DIFFUSIVITIES,
    GRAPHS,
    JOINT,
    LEARNED,
    NORMALISERS,
    bare,
    check_derivatives,
    check_no_edges_do_no_harm,
    check_relabelling_commutes,
    check_weights_are_normalised,
    kite,
    make,
    normal,
    pairs,
    ragged,
)
from torch import nn

from beltrami.diffusivity import (
    Additive,
    Cosine,
    Diffusivity,
    ExpKernel,
    Mixture,
    RandomWalk,
    ScaledDot,
    constant,
    xavier,
)
from beltrami.diffusivity.base import Projection, edge_distance2
from beltrami.graph import Edges, Normaliser, Rows

all_of_them = pytest.mark.parametrize("name", DIFFUSIVITIES)
learned = pytest.mark.parametrize("name", LEARNED)
normalisers = pytest.mark.parametrize("normalise", NORMALISERS, ids=repr)


@all_of_them
@normalisers
@pytest.mark.parametrize("heads", [1, 3])
def test_weights_are_normalised(name: str, normalise: Normaliser, heads: int) -> None:
    for edges in GRAPHS.values():
        check_weights_are_normalised(make(name, normalise, heads=heads), edges)


@all_of_them
@normalisers
def test_relabelling_the_nodes_relabels_the_weights(name: str, normalise: Normaliser) -> None:
    for edges in GRAPHS.values():
        check_relabelling_commutes(make(name, normalise, heads=2), edges)


@all_of_them
@normalisers
def test_derivatives_by_state_and_parameters(name: str, normalise: Normaliser) -> None:
    check_derivatives(make(name, normalise), kite())


@all_of_them
@pytest.mark.parametrize("edges", [ragged(), bare()], ids=["ragged", "bare"])
def test_derivatives_on_odd_graphs_with_heads(name: str, edges: Edges) -> None:
    check_derivatives(make(name, heads=2), edges)


@all_of_them
@normalisers
@pytest.mark.parametrize("edges", [ragged(weighted=True), bare()], ids=["weighted", "bare"])
def test_nodes_without_edges_do_no_harm(name: str, normalise: Normaliser, edges: Edges) -> None:
    check_no_edges_do_no_harm(make(name, normalise, heads=2), edges)


@all_of_them
def test_single_precision_stays_single(name: str) -> None:
    edges, z = ragged(weighted=True), normal(6, JOINT.channels)
    found = make(name).float()(z.float(), edges)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), make(name)(z, edges), atol=1e-5, rtol=1e-5)


@all_of_them
def test_the_mean_over_heads_comes_after_the_normaliser(name: str) -> None:
    edges, z, a = kite(), normal(4, JOINT.channels), make(name, heads=3)
    heads = a.normalise(a.score(z, edges), edges)
    assert heads.shape == (8, 1 if isinstance(a, RandomWalk | Mixture) else 3)
    torch.testing.assert_close(a(z, edges), heads.mean(1))
    if not isinstance(a, RandomWalk | Mixture):
        before = a.normalise(a.score(z, edges).mean(1, keepdim=True), edges)[:, 0]
        assert not torch.allclose(before, heads.mean(1), atol=1e-6)


@all_of_them
@pytest.mark.parametrize("edges", [kite(), ragged()], ids=["kite", "ragged"])
def test_spread_is_the_deviation_of_weight_times_degree(name: str, edges: Edges) -> None:
    z, a = normal(edges.num_nodes, JOINT.channels), make(name)
    degree = edges.in_degree().tolist()
    shares = [w * degree[i] for w, (i, _) in zip(a(z, edges).tolist(), pairs(edges), strict=True)]
    mean = sum(shares) / len(shares)
    deviation = (sum((share - mean) ** 2 for share in shares) / len(shares)) ** 0.5
    assert a.spread(z, edges) == pytest.approx(deviation, abs=1e-12)


@normalisers
def test_the_random_walk_has_no_spread_under_any_normaliser(normalise: Normaliser) -> None:
    edges = ragged(weighted=True)
    assert make("RandomWalk", normalise).spread(normal(6, JOINT.channels), edges) == pytest.approx(0.0, abs=1e-12)


@learned
@normalisers
def test_xavier_starts_with_some_spread(name: str, normalise: Normaliser) -> None:
    assert make(name, normalise).spread(normal(4, JOINT.channels), kite()) > 1e-3


@pytest.mark.parametrize("name", ["ScaledDot", "ExpKernel", "Additive"])
@normalisers
def test_the_papers_constant_start_is_all_but_uniform(name: str, normalise: Normaliser) -> None:
    a = make(name, normalise, heads=2, start=constant())
    assert a.spread(normal(4, JOINT.channels), kite()) < 1e-6


def test_the_constant_start_leaves_a_cosine_only_its_signs() -> None:
    """Eq. (15) does not see how small the weights are: equal rows of W make every score one or minus one."""
    z, edges = normal(4, JOINT.channels), kite()
    score = make("Cosine", start=constant()).score(z, edges)[:, 0]
    signs = z.sum(1).sign()
    torch.testing.assert_close(score, signs[edges.i] * signs[edges.j])


@all_of_them
def test_spread_of_no_edges_is_zero_and_asks_for_no_gradient(name: str) -> None:
    z = normal(4, JOINT.channels).requires_grad_()
    assert make(name).spread(z, bare()) == 0.0
    assert isinstance(make(name).spread(z, kite()), float)


def test_starts_fill_what_they_are_given() -> None:
    weight = torch.zeros(40, 10)
    assert constant(0.5)(weight).unique().tolist() == [0.5]
    assert constant()(weight).unique().tolist() == pytest.approx([1e-5])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        xavier(weight)
    bound = (6 / 50) ** 0.5
    assert 0.9 * bound < float(weight.abs().max()) <= bound


def test_rows_are_the_default() -> None:
    assert isinstance(RandomWalk().normalise, Rows)
    assert isinstance(RandomWalk(), Diffusivity)


def test_projections_cut_the_width_into_heads() -> None:
    project, z = Projection(5, 6, heads=3, start=nn.init.ones_).double(), normal(4, 5)
    key, query = project(z)
    assert key.shape == query.shape == (4, 3, 2)
    torch.testing.assert_close(key, z.sum(1)[:, None, None].expand(4, 3, 2))


@pytest.mark.parametrize(("width", "heads"), [(7, 2), (4, 0), (4, -1), (0, 1), (2, 3)])
def test_widths_that_no_heads_share_are_refused(width: int, heads: int) -> None:
    message = f"multiple of `heads`; got width={width}, heads={heads}"
    with pytest.raises(ValueError, match=message):
        ScaledDot(5, width, heads=heads)
    with pytest.raises(ValueError, match=message):
        Cosine(5, width, heads=heads)
    with pytest.raises(ValueError, match=message):
        ExpKernel(JOINT, width, heads=heads)
    with pytest.raises(ValueError, match=message):
        Additive(5, width, heads=heads)


def test_distances_across_edges_are_never_negative() -> None:
    edges = kite()
    p, q = normal(4, 2, 3), normal(4, 2, 3, seed=1)
    torch.testing.assert_close(edge_distance2(p, q, edges), (p[edges.i] - q[edges.j]).square().sum(-1))
    same = (1e3 + torch.rand(1, 2, 3, generator=torch.Generator().manual_seed(0))).expand(4, 2, 3).contiguous()
    assert float(edge_distance2(same, same, edges).min()) >= 0.0
