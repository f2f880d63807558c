"""Personalised PageRank against the dense inverse, heat against the dense exponential."""

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from checks import dense, kite, undirected
from torch import Tensor

from beltrami.graph import Edges, aggregate
from beltrami.graph.pagerank.kernel import heat_kernel, personalised_pagerank, symmetric_weights, top_entries
from beltrami.graph.pagerank.push import largest_entries
from beltrami.position import PPR, Heat
from beltrami.stencil import Threshold, TopK

EYE = torch.eye(6, dtype=torch.float64)
ALL = torch.arange(6)


def lollipop(*, weighted: bool = True) -> Edges:
    """A triangle with a tail of three in double precision: its edges weigh one, or 1 + i + j."""
    edges = undirected([(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (4, 5)], num_nodes=6)
    weight = (1 + edges.i + edges.j).double() if weighted else torch.ones(12, dtype=torch.float64)
    return Edges.build(edges.edge_index, num_nodes=6, weight=weight)


def adjacency(edges: Edges) -> Tensor:
    assert edges.weight is not None
    return dense(edges.weight, edges)


def symmetric(edges: Edges) -> Tensor:
    a = adjacency(edges)
    root = a.sum(1).rsqrt()
    return root[:, None] * a * root


@pytest.mark.parametrize("weighted", [False, True])
def test_symmetric_weights_are_the_entries_of_s(weighted: bool) -> None:
    edges = lollipop(weighted=weighted)
    torch.testing.assert_close(dense(symmetric_weights(edges), edges), symmetric(edges))


def test_a_graph_without_weights_counts_its_edges() -> None:
    edges = kite()
    degree = edges.in_degree().float()
    torch.testing.assert_close(symmetric_weights(edges), (degree[edges.i] * degree[edges.j]).rsqrt())


@pytest.mark.parametrize("restart", [0.02, 0.95])
@pytest.mark.parametrize("loops", [False, True])
def test_chebyshev_converges_to_the_dense_inverse(restart: float, loops: bool) -> None:
    edges = lollipop().with_loops(1.0) if loops else lollipop()
    exact = restart * torch.linalg.inv(EYE - (1 - restart) * symmetric(edges))
    torch.testing.assert_close(personalised_pagerank(edges, ALL, restart=restart), exact, atol=1e-6, rtol=0)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-12])
def test_the_tolerance_bounds_the_error(tolerance: float) -> None:
    edges = lollipop()
    exact = 0.05 * torch.linalg.inv(EYE - 0.95 * symmetric(edges))
    error = personalised_pagerank(edges, ALL, restart=0.05, tolerance=tolerance) - exact
    # The start is zero, and its error the column itself, at most one in the Euclidean norm.
    assert float(torch.linalg.vector_norm(error, dim=0).max()) <= tolerance


def test_single_precision_reaches_six_digits() -> None:
    edges = kite()
    a = dense(torch.ones(8, dtype=torch.float64), edges)
    root = a.sum(1).rsqrt()
    exact = 0.05 * torch.linalg.inv(torch.eye(4, dtype=torch.float64) - 0.95 * root[:, None] * a * root)
    found = personalised_pagerank(edges, torch.arange(4), restart=0.05)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), exact, atol=2e-6, rtol=0)


def test_the_random_walks_kernel_is_its_similarity_transform() -> None:
    """D^-1/2 K D^1/2 = rho (I - (1 - rho) P)^-1 with P = D^-1 A: eq. (12) with the matrix its series needs."""
    edges, restart = lollipop(), 0.15
    a = adjacency(edges)
    degree = a.sum(1)
    p = a / degree[:, None]
    walk = degree.rsqrt()[:, None] * personalised_pagerank(edges, ALL, restart=restart, tolerance=1e-13) * degree.sqrt()
    torch.testing.assert_close(walk, restart * torch.linalg.inv(EYE - (1 - restart) * p), atol=1e-11, rtol=0)
    torch.testing.assert_close(walk.sum(1), torch.ones(6, dtype=torch.float64))
    series = sum(restart * (1 - restart) ** k * torch.linalg.matrix_power(p, k) for k in range(200))
    torch.testing.assert_close(walk, series, atol=1e-11, rtol=0)


def test_some_columns_equal_those_of_the_whole_kernel() -> None:
    edges = lollipop()
    wanted = torch.tensor([4, 1])
    torch.testing.assert_close(
        personalised_pagerank(edges, wanted, restart=0.1),
        personalised_pagerank(edges, ALL, restart=0.1)[:, wanted],
        atol=1e-12,
        rtol=0,
    )


def test_the_entry_of_a_node_without_edges_is_the_restart() -> None:
    edges = undirected([(0, 1)], num_nodes=3)
    found = personalised_pagerank(edges, torch.arange(3), restart=0.2)
    assert found[2].tolist() == pytest.approx([0.0, 0.0, 0.2], abs=1e-6)
    assert bool(torch.isfinite(found).all())


@pytest.mark.parametrize("top", [1, 2, 4])
def test_top_entries_keep_the_largest_of_each_column(top: int) -> None:
    edges = lollipop()
    kernel = personalised_pagerank(edges, ALL, restart=0.05)
    found = top_entries(edges, partial(personalised_pagerank, restart=0.05), top=top).to_dense()
    assert (found > 0).sum(0).tolist() == [top] * 6
    for column in range(6):
        largest = kernel[:, column].sort(descending=True).values[:top]
        torch.testing.assert_close(found[:, column].sort(descending=True).values[:top], largest)


def test_blocks_do_not_change_the_result() -> None:
    edges = lollipop()
    kernel = partial(personalised_pagerank, restart=0.05)
    whole, pieces = (top_entries(edges, kernel, top=3, block=block).to_dense() for block in (512, 2))
    torch.testing.assert_close(pieces, whole, atol=1e-14, rtol=1e-12)


def test_entries_between_components_are_zero() -> None:
    pairs = undirected([(0, 1), (2, 3)], num_nodes=4)
    found = top_entries(pairs, partial(personalised_pagerank, restart=0.05), top=4).to_dense()
    assert (found > 0).int().tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]


@pytest.mark.parametrize("restart", [0.0, 1.0, -0.1, float("nan")])
def test_a_restart_that_is_no_probability_is_refused(restart: float) -> None:
    with pytest.raises(ValueError, match="`restart` must lie between 0 and 1"):
        personalised_pagerank(kite(), torch.arange(4), restart=restart)


def test_without_a_limit_every_entry_is_kept_dense() -> None:
    edges = lollipop()
    seen: list[int] = []
    kernel = partial(heat_kernel, time=1.0)
    found = top_entries(edges, kernel, top=None, block=4, on_columns=seen.append)
    assert found.layout == torch.strided
    torch.testing.assert_close(found, kernel(edges, ALL), atol=1e-14, rtol=1e-12)
    assert seen == [4, 6]


@pytest.mark.parametrize("time", [0.0, 1.0, 200.0])
@pytest.mark.parametrize("loops", [False, True])
def test_heat_is_the_dense_exponential(time: float, loops: bool) -> None:
    edges = lollipop().with_loops(1.0) if loops else lollipop()
    exact = torch.linalg.matrix_exp(-time * (EYE - symmetric(edges)))
    torch.testing.assert_close(heat_kernel(edges, ALL, time=time, tolerance=1e-13), exact, atol=2e-13, rtol=0)


@pytest.mark.parametrize("time", [0.3, 5.0, 80.0])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-12])
def test_the_tolerance_bounds_the_error_of_heat(time: float, tolerance: float) -> None:
    edges = lollipop()
    exact = torch.linalg.matrix_exp(-time * (EYE - symmetric(edges)))
    error = heat_kernel(edges, ALL, time=time, tolerance=tolerance) - exact
    assert float(torch.linalg.vector_norm(error, dim=0).max()) <= tolerance + 1e-14


def test_heat_kernels_form_a_semigroup() -> None:
    """H_s H_t = H_(s + t)."""
    edges = lollipop()
    first, second, both = (heat_kernel(edges, ALL, time=time, tolerance=1e-13) for time in (0.7, 1.9, 2.6))
    torch.testing.assert_close(first @ second, both, atol=1e-12, rtol=0)


def test_rows_of_the_heat_kernel_of_the_random_walk_sum_to_one() -> None:
    """D^-1/2 H_t D^1/2 = exp(-t (I - P)): rows sum to one, entries are probabilities."""
    edges = lollipop()
    a = adjacency(edges)
    degree = a.sum(1)
    walk = degree.rsqrt()[:, None] * heat_kernel(edges, ALL, time=2.0, tolerance=1e-13) * degree.sqrt()
    torch.testing.assert_close(walk, torch.linalg.matrix_exp(-2.0 * (EYE - a / degree[:, None])), atol=1e-12, rtol=0)
    torch.testing.assert_close(walk.sum(1), torch.ones(6, dtype=torch.float64))


def test_products_grow_with_the_root_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = [0]

    def counting(a: Tensor, z: Tensor, edges: Edges) -> Tensor:
        counted[0] += 1
        return aggregate(a, z, edges)

    monkeypatch.setattr("beltrami.graph.pagerank.kernel.aggregate", counting)
    heat_kernel(kite(), torch.arange(1), time=1000.0, tolerance=1e-6)
    assert counted[0] <= math.sqrt(2 * 1000 * math.log(2e6))


@pytest.mark.parametrize("time", [-1.0, math.inf, math.nan])
def test_a_negative_or_infinite_time_is_refused(time: float) -> None:
    with pytest.raises(ValueError, match="`time` must be finite and not negative"):
        heat_kernel(kite(), torch.arange(4), time=time)


@pytest.mark.parametrize("time", [1e9, 1e300])
def test_a_heat_kernel_of_too_many_products_is_refused(time: float) -> None:
    with pytest.raises(ValueError, match=r"heat kernel at `time` 1e.* at most 2000 are allowed: choose a time below"):
        heat_kernel(kite(), torch.arange(4), time=time)
    with pytest.raises(ValueError, match="heat kernel at `time`"):
        Heat(time=time)


@pytest.mark.parametrize("restart", [1e-9, 1e-300])
def test_a_pagerank_of_too_many_products_is_refused(restart: float) -> None:
    message = r"PageRank with `restart` 1e-.* at most 2000 are allowed: choose a `restart` of at least 1e-4"
    refused: list[Callable[[], object]] = [
        lambda: personalised_pagerank(kite(), torch.arange(4), restart=restart),
        lambda: largest_entries(kite(), restart=restart, top=2),
        lambda: PPR(restart=restart),
        lambda: TopK(2, restart=restart),
        lambda: Threshold(0.1, restart=restart),
    ]
    for call in refused:
        with pytest.raises(ValueError, match=message):
            call()
