"""Shallow embeddings in the Poincaré ball and in Euclidean space: training, refusals and quality."""

import math
from collections.abc import Callable

import pytest
import torch
from checks import GRAPHS, check_random_encoding, pairs, undirected
from torch import Tensor

from beltrami.data import Dataset
from beltrami.geometry import Euclidean, Metric, PoincareBall
from beltrami.graph import Edges
from beltrami.position import Hyperbolic
from beltrami.position.deepwalk import held_out, link_auc

METRICS: list[Metric] = [PoincareBall(), Euclidean()]


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def binary_tree(depth: int) -> Edges:
    nodes = 2 ** (depth + 1) - 1
    return undirected([(child, (child - 1) // 2) for child in range(1, nodes)], num_nodes=nodes)


def nearness(u: Tensor, metric: Metric) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda i, j: -metric.distance(u[i], u[j])


@pytest.mark.slow
@pytest.mark.parametrize("name", list(GRAPHS))
def test_every_graph_passes_the_checks_of_random_encodings(name: str) -> None:
    edges = GRAPHS[name]
    u = Hyperbolic(3, epochs=3, burn_in=1)(edges, seeded(0))
    assert u.shape == (edges.num_nodes, 3)
    assert bool(PoincareBall().inside(u).all())
    if edges.num_edges:
        check_random_encoding(Hyperbolic(3, epochs=3, burn_in=1), edges)


def test_nodes_without_edges_lie_at_the_origin() -> None:
    assert torch.equal(Hyperbolic(2)(GRAPHS["bare"], seeded(0)), torch.zeros(4, 2))


def test_initial_points_differ_even_on_a_complete_graph() -> None:
    complete = undirected([(j, i) for i in range(30) for j in range(i)], num_nodes=30)
    u = Hyperbolic(2, epochs=1, burn_in=0)(complete, seeded(0))
    norms = u.norm(dim=-1)
    assert float(norms.max()) == pytest.approx(0.1)
    assert float(torch.pdist(u).min()) > 1e-5
    assert float(torch.linalg.svdvals(u)[-1]) > 0.05  # not on a line


def test_self_loops_are_ignored() -> None:
    ring = undirected([(k, (k + 1) % 7) for k in range(7)], num_nodes=7)
    encoding = Hyperbolic(2, epochs=3, burn_in=0)
    assert torch.equal(encoding(ring.with_loops(1.0), seeded(0)), encoding(ring, seeded(0)))


def test_equal_weights_have_no_effect_and_unequal_ones_do() -> None:
    ring = undirected([(k, (k + 1) % 7) for k in range(7)], num_nodes=7)
    encoding = Hyperbolic(2, epochs=3, burn_in=0)
    u = encoding(ring, seeded(0))
    ones = Edges.build(ring.edge_index, num_nodes=7, weight=torch.full((14,), 2.0))
    torch.testing.assert_close(encoding(ones, seeded(0)), u)
    uneven = Edges.build(ring.edge_index, num_nodes=7, weight=torch.linspace(0.1, 3.0, 14))
    assert not torch.allclose(encoding(uneven, seeded(0)), u)


def loss_by_loops(u: Tensor, metric: Metric, edges: Edges) -> float:
    """Return the mean of the objective over the edges, with all non-neighbours as negatives."""
    near, total = set(pairs(edges)), 0.0
    square = metric.distance(u[:, None].double(), u[None, :].double()).square().tolist()
    for i, j in near:
        others = [k for k in range(edges.num_nodes) if k != i and (i, k) not in near]
        total += math.log(sum(math.exp(square[i][j] - square[i][k]) for k in [j, *others]))
    return total / len(near)


def reconstruction_precision(u: Tensor, metric: Metric, edges: Edges) -> float:
    """Return the mean average precision of the neighbours of every node among all other nodes, by distance."""
    apart, near = metric.pairwise(u, u), torch.zeros(len(u), len(u), dtype=torch.bool, device=u.device)
    near[edges.i, edges.j] = True
    precisions = []
    for i in range(len(u)):
        ranked = near[i][apart[i].argsort()[apart[i].argsort() != i]].double()
        precision = ranked.cumsum(0) / torch.arange(1, len(u), device=u.device)
        precisions.append(float((precision * ranked).sum() / ranked.sum()))
    return sum(precisions) / len(precisions)


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_training_lowers_the_objective(metric: Metric) -> None:
    tree = binary_tree(4)
    start = Hyperbolic(2, metric=metric, epochs=1, rate=1e-9, burn_in=0)(tree, seeded(0))
    u = Hyperbolic(2, metric=metric, epochs=60, negatives=20, rate=0.1, batch=32)(tree, seeded(0))
    before, after = (loss_by_loops(v, metric, tree) for v in (start, u))
    assert before == pytest.approx(math.log(29), abs=0.1)  # nearly one point: 28 non-neighbours, or a few less
    assert after < 0.3 * before


def test_neighbours_are_never_negatives() -> None:
    # A complete graph has no non-neighbours: there is no gradient, and nothing moves.
    complete = undirected([(j, i) for i in range(5) for j in range(i)], num_nodes=5)
    once, twice = (Hyperbolic(2, epochs=epochs, burn_in=0)(complete, seeded(3)) for epochs in (1, 20))
    torch.testing.assert_close(once, twice)


def test_no_step_is_longer_than_one() -> None:
    tree, ball = binary_tree(3), PoincareBall()
    still = Hyperbolic(2, epochs=1, rate=1e-9, burn_in=0)(tree, seeded(0))
    wild = Hyperbolic(2, epochs=1, rate=1e9, burn_in=0)(tree, seeded(0))
    moved = ball.distance(still, wild)
    assert float(moved.max()) == pytest.approx(1.0, abs=1e-3)


def test_progress_receives_every_epoch() -> None:
    seen: list[tuple[str, int, int | None]] = []
    Hyperbolic(2, epochs=3, burn_in=0, progress=lambda *report: seen.append(report))(binary_tree(2), seeded(0))
    assert seen == [("Hyperbolic", epoch, 3) for epoch in (1, 2, 3)]


def test_the_description_has_the_parameters() -> None:
    described = Hyperbolic(3, rate=0.1).describe()["parameters"]
    ball = {"class": "beltrami.PoincareBall", "fields": {"curvature": 1.0}}
    wanted = {"channels": 3, "epochs": 60, "negatives": 10, "rate": 0.1, "burn_in": 5, "batch": 1024, "metric": ball}
    assert described == wanted


@pytest.mark.parametrize("name", ["channels", "epochs", "negatives", "batch"])
def test_counts_below_one_are_refused(name: str) -> None:
    c, e, n, b = (int(name != other) for other in ("channels", "epochs", "negatives", "batch"))
    with pytest.raises(ValueError, match=f"needs `{name}` at least 1; got 0"):
        Hyperbolic(c, epochs=e, negatives=n, batch=b, burn_in=0)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_rates_that_are_not_positive_are_refused(rate: float) -> None:
    with pytest.raises(ValueError, match=f"needs a positive, finite `rate`; got {rate}"):
        Hyperbolic(2, rate=rate)


@pytest.mark.parametrize("burn_in", [-1, 11])
def test_more_burn_in_than_epochs_is_refused(burn_in: int) -> None:
    with pytest.raises(ValueError, match=rf"`burn_in` from 0 to `epochs`, 10; got {burn_in}"):
        Hyperbolic(2, epochs=10, burn_in=burn_in)


def test_a_generator_is_needed() -> None:
    with pytest.raises(ValueError, match="Hyperbolic is random: pass a `generator`"):
        Hyperbolic(2)(binary_tree(2))


@pytest.mark.slow
def test_two_hyperbolic_dimensions_hold_a_tree_that_two_flat_ones_do_not() -> None:
    # Both are trained on squared distances. On plain distances flat space reaches about 0.8.
    tree = binary_tree(7)

    def precision(metric: Metric) -> float:
        u = Hyperbolic(2, metric=metric, epochs=150, negatives=50, rate=0.3, batch=128)(tree, seeded(0))
        return reconstruction_precision(u, metric, tree)

    hyperbolic, flat = precision(PoincareBall()), precision(Euclidean())
    assert hyperbolic > 0.85
    assert hyperbolic >= 1.3 * flat


@pytest.mark.slow
@pytest.mark.data
def test_sixteen_dimensions_predict_the_links_of_cora(real: Callable[[str], Dataset]) -> None:
    cora = real("cora")
    edges = Edges.build(cora.edge_index, num_nodes=cora.num_nodes)
    training, positive, negative = held_out(edges, share=0.1, generator=seeded(0))
    u = Hyperbolic(16)(training, seeded(0))
    assert link_auc(nearness(u, PoincareBall()), positive, negative) >= 0.84


@pytest.mark.gpu
def test_it_runs_on_a_gpu() -> None:
    tree = binary_tree(5).to("cuda")
    u = Hyperbolic(2, epochs=60, negatives=20, rate=0.1, batch=32)(tree, torch.Generator("cuda").manual_seed(0))
    assert u.device.type == "cuda"
    assert reconstruction_precision(u, PoincareBall(), tree) > 0.5
    assert Hyperbolic(2, epochs=5)(tree, seeded(0)).device.type == "cuda"
