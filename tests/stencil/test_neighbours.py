"""Nearest neighbours against double loops, and faiss's against the exact ones."""

import sys
from importlib.util import find_spec

import pytest
import torch
from torch import Tensor

from beltrami.geometry import Euclidean, Metric, PoincareBall
from beltrami.graph import Edges
from beltrami.stencil import KNN, Chain, Radius, Symmetric, neighbours

N = 30
NONE = Edges.build(torch.empty(2, 0, dtype=torch.int64), num_nodes=N)
with_faiss = pytest.mark.skipif(find_spec("faiss") is None, reason="faiss is not installed")
METRICS = pytest.mark.parametrize("metric", [Euclidean(), PoincareBall()], ids=repr)


def points(*, dtype: torch.dtype = torch.float64) -> Tensor:
    z = torch.randn(N, 5, dtype=dtype, generator=torch.Generator().manual_seed(0))
    scaled: Tensor = 0.4 * z / z.norm(dim=1).max()
    return scaled


def pairs(edges: Edges) -> set[tuple[int, int]]:
    listed = [(j, i) for j, i in edges.edge_index.T.tolist()]
    assert len(set(listed)) == len(listed), "an edge occurs twice"
    return set(listed)


@METRICS
@pytest.mark.parametrize("on", [None, slice(0, 2)], ids=["all", "u"])
def test_nearest_neighbours_are_those_of_the_double_loop(metric: Metric, on: slice | None) -> None:
    z = points()
    p = z if on is None else z[:, on]
    expected = set()
    for i in range(N):
        apart = sorted((float(metric.distance(p[i], p[j])), j) for j in range(N) if j != i)
        expected |= {(j, i) for _, j in apart[:4]}
    assert pairs(KNN(4, on=on, metric=metric)(z, NONE)) == expected


@METRICS
def test_nodes_within_the_radius_are_those_of_the_double_loop(metric: Metric) -> None:
    z, r = points(), 0.35
    apart = {(j, i): float(metric.distance(z[i], z[j])) for i in range(N) for j in range(N) if i != j}
    expected = {pair for pair, distance in apart.items() if distance <= r}
    assert 0 < len(expected) < N * (N - 1)
    assert pairs(Radius(r, metric=metric)(z, NONE)) == expected


def test_the_block_size_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    z = points(dtype=torch.float32)
    whole = pairs(KNN(3)(z, NONE)), pairs(Radius(0.3)(z, NONE))
    monkeypatch.setattr(neighbours, "BLOCK", 4 * N)
    assert (pairs(KNN(3)(z, NONE)), pairs(Radius(0.3)(z, NONE))) == whole


def test_of_equal_distances_the_lowest_nodes_are_taken() -> None:
    edges = KNN(2)(torch.zeros(5, 3), Edges.build(torch.empty(2, 0, dtype=torch.int64), num_nodes=5))
    assert pairs(edges) == {(j, i) for i in range(5) for j in [k for k in range(5) if k != i][:2]}


def test_symmetric_neighbours_are_mutual_and_unique() -> None:
    one_way, both = pairs(KNN(3)(points(), NONE)), pairs(Chain(KNN(3), Symmetric())(points(), NONE))
    assert both == one_way | {(i, j) for j, i in one_way}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KNN(0), "`k` at least 1"),
        (lambda: KNN(N)(points(), NONE), r"below the number of nodes; got k=30, 30 nodes"),
        (lambda: KNN(2, metric=PoincareBall(), approximate=True), "Euclidean space only"),
        (lambda: KNN(2, on=slice(0, 0))(points(), NONE), "channels to measure in"),
        (lambda: KNN(2, metric=PoincareBall())(10 * points(), NONE), "inside the space"),
        (lambda: Radius(0.0), "positive, finite `r`"),
    ],
)
def test_refusals(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=message):
        make()


def without_edges(z: Tensor) -> Edges:
    return Edges.build(torch.empty(2, 0, dtype=torch.int64), num_nodes=len(z))


def clusters() -> Tensor:
    """Return twenty clusters of fifty points in eight channels, far apart and of different width."""
    generator = torch.Generator().manual_seed(0)
    centre, width = 10 * torch.randn(20, 1, 8, generator=generator), 0.1 + torch.rand(20, 1, 1, generator=generator)
    points: Tensor = (centre + width * torch.randn(20, 50, 8, generator=generator)).flatten(0, 1)
    return points


def keys(edges: Edges) -> Tensor:
    return edges.i * edges.num_nodes + edges.j


@pytest.mark.parametrize(("k", "on"), [(1, None), (10, slice(0, 3)), (40, None)])
@with_faiss
def test_faiss_finds_nearly_all_neighbours(k: int, on: slice | None) -> None:
    z = clusters()
    none = without_edges(z)
    exact, found = KNN(k, on=on)(z, none), KNN(k, on=on, approximate=True)(z, none)
    assert torch.equal(found.in_degree(), exact.in_degree())
    assert not bool((found.i == found.j).any())
    assert len(keys(found).unique()) == found.num_edges == k * len(z)
    assert float(torch.isin(keys(found), keys(exact)).double().mean()) >= 0.95


@with_faiss
def test_faiss_is_deterministic() -> None:
    z = clusters()
    one, other = (KNN(10, approximate=True)(z, without_edges(z)) for _ in range(2))
    assert torch.equal(one.edge_index, other.edge_index)


@pytest.mark.parametrize("z", [torch.zeros(300, 2), torch.arange(4.0)[:, None].double()], ids=["equal", "few"])
@with_faiss
def test_faiss_finds_k_neighbours_of_every_node(z: Tensor) -> None:
    found = KNN(3, approximate=True)(z, without_edges(z))
    assert found.in_degree().tolist() == [3] * len(z)
    assert not bool((found.i == found.j).any())


@with_faiss
def test_faiss_uses_the_number_of_threads_of_torch() -> None:
    import faiss

    faiss.omp_set_num_threads(torch.get_num_threads() + 1)
    KNN(3, approximate=True)(clusters(), without_edges(clusters()))
    assert faiss.omp_get_max_threads() == torch.get_num_threads()


def test_an_approximate_search_without_faiss_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ValueError, match=r"needs faiss: install `beltrami\[approximate\]`"):
        KNN(3, approximate=True)(clusters(), without_edges(clusters()))


SCALES = pytest.mark.parametrize("scale", [1e20, 3e38, 1e-22, 1e-38, 1e-43, 1.0])


@SCALES
@pytest.mark.parametrize("offset", [0.0, 0.5], ids=["centred", "aside"])
def test_neighbours_at_any_scale_are_those_in_double_precision(scale: float, offset: float) -> None:
    z = (scale * (points() + offset)).float()
    apart = torch.cdist(z.double(), z.double(), compute_mode="donot_use_mm_for_euclid_dist").fill_diagonal_(torch.inf)
    order = apart.sort(dim=1, stable=True).indices
    expected = {(j, i) for i in range(N) for j in order[i, :4].tolist()}
    if scale == 1e-43:  # a few multiples of the smallest number: many distances are equal
        chosen = torch.zeros_like(apart, dtype=torch.bool)
        chosen[tuple(KNN(4)(z, NONE).edge_index.flip(0))] = True
        total, least = apart.masked_fill(~chosen, 0).sum(1) / scale, apart.sort(dim=1).values[:, :4].sum(1) / scale
        torch.testing.assert_close(total, least)
    else:
        assert pairs(KNN(4)(z, NONE)) == expected
    r = float(apart.flatten().sort().values[151:153].mean())
    if r < 1e300:
        within = (apart <= r).nonzero().tolist()
        assert pairs(Radius(r)(z, NONE)) == {(j, i) for i, j in within}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1e-22, 1e-38, 1e19])
def test_neighbours_in_a_ball_of_any_size_are_those_of_the_unit_ball(scale: float, dtype: torch.dtype) -> None:
    z, unit, r = (scale * points()).to(dtype), points(), 0.35
    ball, unit_ball = PoincareBall(scale**-2.0), PoincareBall()
    assert pairs(KNN(4, metric=ball)(z, NONE)) == pairs(KNN(4, metric=unit_ball)(unit, NONE))
    assert pairs(Radius(r * scale, metric=ball)(z, NONE)) == pairs(Radius(r, metric=unit_ball)(unit, NONE))


@pytest.mark.parametrize("scale", [1e-15, 1e-22, 1e-38])
def test_points_near_the_origin_of_the_ball_have_euclidean_neighbours(scale: float) -> None:
    z = (scale * points()).float()
    assert pairs(KNN(4, metric=PoincareBall())(z, NONE)) == pairs(KNN(4)(points(), NONE))
    found = pairs(Radius(0.5 * scale, metric=PoincareBall())(z, NONE))
    assert found == pairs(Radius(0.25 * scale)(z, NONE))
    assert 0 < len(found) < N * (N - 1)


def test_points_outside_a_large_ball_are_refused() -> None:
    with pytest.raises(ValueError, match="KNN needs points inside the space"):
        KNN(4, metric=PoincareBall(1e-38))((1e20 * points()).float(), NONE)


def test_a_small_cluster_among_distant_points_keeps_its_neighbours() -> None:
    """Squares of its differences underflow in single precision, at every scale that suits the other points."""
    z = points()
    z[:10] *= 1e-25
    z = z.float()
    apart = torch.cdist(z.double(), z.double(), compute_mode="donot_use_mm_for_euclid_dist").fill_diagonal_(torch.inf)
    expected = {(j, i) for i in range(10) for j in apart[i].argsort()[:3].tolist()}
    assert {(j, i) for j, i in pairs(KNN(3)(z, NONE)) if i < 10} == expected


@with_faiss
@pytest.mark.parametrize("scale", [2.0**64, 2.0**-74])
def test_approximate_neighbours_do_not_depend_on_the_scale(scale: float) -> None:
    near = KNN(4, approximate=True)
    assert pairs(near((scale * points()).float(), NONE)) == pairs(near(points().float(), NONE))
