"""Stencils that look at the state, against brute force."""

import pytest
import torch
from torch import Tensor

from beltrami.diffusivity import Gaussian
from beltrami.geometry import Euclidean, Metric, PoincareBall
from beltrami.graph import Edges
from beltrami.joint import Joint
from beltrami.stencil import (
    KNN,
    Chain,
    Charted,
    Complete,
    Isolated,
    KeepStrongest,
    Loops,
    Radius,
    Symmetric,
    TrainingOnly,
    Unweighted,
    neighbours,
)

N = 30
NONE = Edges.build(torch.empty(2, 0, dtype=torch.int64), num_nodes=N)
METRICS = pytest.mark.parametrize("metric", [Euclidean(), PoincareBall()], ids=repr)


def points(*, dtype: torch.dtype = torch.float64) -> Tensor:
    z = torch.randn(N, 5, dtype=dtype, generator=torch.Generator().manual_seed(0))
    scaled: Tensor = 0.4 * z / z.norm(dim=1).max()
    return scaled


def pairs(edges: Edges) -> set[tuple[int, int]]:
    listed = [(j, i) for j, i in edges.edge_index.T.tolist()]
    assert len(set(listed)) == len(listed), "an edge stands there twice"
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
    limited = Radius(r, metric=metric, limit=2)(z, NONE)
    assert pairs(limited) < expected
    assert int(limited.in_degree().max()) == 2


def test_size_of_the_blocks_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    z = points(dtype=torch.float32)
    whole = pairs(KNN(3)(z, NONE)), pairs(Radius(0.3)(z, NONE))
    monkeypatch.setattr(neighbours, "CELLS", 4 * N)
    assert (pairs(KNN(3)(z, NONE)), pairs(Radius(0.3)(z, NONE))) == whole


def test_of_equal_distances_the_lowest_nodes_are_taken() -> None:
    edges = KNN(2)(torch.zeros(5, 3), Edges.build(torch.empty(2, 0, dtype=torch.int64), num_nodes=5))
    assert pairs(edges) == {(j, i) for i in range(5) for j in [k for k in range(5) if k != i][:2]}


def test_symmetric_neighbours_are_mutual_and_stand_once() -> None:
    one_way, both = pairs(KNN(3)(points(), NONE)), pairs(Chain(KNN(3), Symmetric())(points(), NONE))
    assert both == one_way | {(i, j) for j, i in one_way}


def test_symmetric_keeps_the_larger_weight_and_unweighted_none() -> None:
    edges = Edges.build(torch.tensor([[0, 1, 1], [1, 0, 2]]), num_nodes=3, weight=torch.tensor([1.0, 4.0, 2.0]))
    both = Symmetric()(torch.zeros(3, 1), edges)
    assert both.weight is not None
    weights = dict(zip(map(tuple, both.edge_index.T.tolist()), both.weight.tolist(), strict=True))
    assert weights == {(0, 1): 4.0, (1, 0): 4.0, (1, 2): 2.0, (2, 1): 2.0}
    assert Unweighted()(torch.zeros(3, 1), edges).weight is None


def test_complete_and_isolated_graphs() -> None:
    z = points()
    assert pairs(Complete()(z, NONE)) == {(j, i) for j in range(N) for i in range(N) if i != j}
    assert Isolated()(z, Complete()(z, NONE)).num_edges == 0


def test_strongest_edges_are_those_of_largest_weight_and_loops_stay() -> None:
    z, diffusivity = points(), Gaussian(Joint(2, 3), length=0.2).double()
    edges = Chain(KNN(6), Loops())(z, NONE)
    kept = KeepStrongest(0.5, diffusivity)(z, edges)
    a = dict(zip(map(tuple, edges.edge_index.T.tolist()), diffusivity(z, edges).tolist(), strict=True))
    others = {pair: value for pair, value in a.items() if pair[0] != pair[1]}
    strongest = sorted(others, key=lambda pair: -others[pair])[: len(others) // 2]
    assert pairs(kept) == set(strongest) | {(i, i) for i in range(N)}


def test_edges_are_dropped_while_training_alone() -> None:
    z, diffusivity = points(), Gaussian(Joint(2, 3), length=0.2).double()
    edges = KNN(6)(z, NONE)
    thinned = TrainingOnly(KeepStrongest(0.5, diffusivity), diffusivity)
    assert pairs(thinned(z, edges)) == pairs(KeepStrongest(0.5, diffusivity)(z, edges)) < pairs(edges)
    diffusivity.eval()
    assert thinned(z, edges) is edges


def test_neighbours_in_the_ball_are_found_from_logarithms_at_the_origin() -> None:
    u, ball = 6 * points(), PoincareBall()  # the logarithms of points all over the ball
    charted = Charted(KNN(4, metric=ball), lambda z: ball.exp_origin(z[:, 1:3]))
    p = torch.tanh(u[:, 1:3].norm(dim=1, keepdim=True)) * u[:, 1:3] / u[:, 1:3].norm(dim=1, keepdim=True)
    assert pairs(charted(u, NONE)) == pairs(KNN(4, metric=ball)(p, NONE))
    assert pairs(charted(u, NONE)) != pairs(KNN(4)(u[:, 1:3], NONE))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KNN(0), "`k` at least 1"),
        (lambda: KNN(N)(points(), NONE), r"below the number of nodes; got k=30, 30 nodes"),
        (lambda: KNN(2, metric=PoincareBall(), approximate=True), "Euclidean space only"),
        (lambda: KNN(2, on=slice(0, 0))(points(), NONE), "channels to measure in"),
        (lambda: KNN(2, metric=PoincareBall())(10 * points(), NONE), "inside the space"),
        (lambda: Radius(0.0), "positive, finite `r`"),
        (lambda: Radius(1.0, limit=0), "`limit` at least 1"),
        (lambda: KeepStrongest(0.0, Gaussian(Joint(2, 3))), "`share` above 0"),
    ],
)
def test_refusals(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=message):
        make()
