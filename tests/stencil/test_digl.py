"""DIGL's rewiring against the dense inverse."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from checks import crooked, dense, kite, normal, ragged
from torch import Tensor

from beltrami.data import Dataset
from beltrami.data.synthetic import power_law
from beltrami.diffusivity import RandomWalk
from beltrami.graph import Edges
from beltrami.graph.pagerank.push import largest_entries
from beltrami.position import PPR
from beltrami.stencil import Chain, Stencil, Symmetric, Threshold, TopK, Unweighted, digl

GRAPHS = {"kite": kite(), "crooked": crooked()}
ON_GRAPHS = pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())


def kernel(edges: Edges, restart: float = 0.05) -> Tensor:
    """Return rho (I - (1 - rho) S)^-1, S = D^-1/2 (A + I) D^-1/2."""
    a = torch.eye(edges.num_nodes, dtype=torch.float64)
    a.index_put_((edges.i, edges.j), torch.ones(edges.num_edges, dtype=torch.float64), accumulate=True)
    root = a.sum(1).rsqrt()
    inverse: Tensor = torch.linalg.inv(
        torch.eye(len(a), dtype=torch.float64) - (1 - restart) * root[:, None] * a * root
    )
    return restart * inverse


def matrix(edges: Edges) -> Tensor:
    """Return the matrix whose entry (i, j) is the weight of the edge j -> i."""
    assert edges.weight is not None
    return torch.zeros(edges.num_nodes, edges.num_nodes).index_put_((edges.i, edges.j), edges.weight).double()


@ON_GRAPHS
@pytest.mark.parametrize(("k", "restart"), [(1, 0.05), (2, 0.4), (3, 0.05), (9, 0.4)])
def test_topk_keeps_the_largest_entries_of_each_row(edges: Edges, k: int, restart: float) -> None:
    exact = kernel(edges, restart)
    wanted = torch.zeros_like(exact)
    for i, row in enumerate(exact.tolist()):
        for j in sorted(range(len(row)), key=lambda j: -row[j])[:k]:
            wanted[i, j] = row[j]
    found = TopK(k, restart=restart)(normal(edges.num_nodes, 1), edges)
    assert int(found.in_degree().max()) == min(k, edges.num_nodes)
    if edges is not GRAPHS["kite"] or k in (1, 9):  # two nodes of the kite are equivalent: either may be taken
        torch.testing.assert_close(matrix(found), wanted, atol=2e-6, rtol=0)
    rows = (matrix(found).sort(descending=True).values, wanted.sort(descending=True).values)
    torch.testing.assert_close(*rows, atol=2e-6, rtol=0)


@ON_GRAPHS
@pytest.mark.parametrize("least", [0.01, 0.1, 0.17, 0.5])
def test_threshold_keeps_what_reaches_it(edges: Edges, least: float) -> None:
    exact = kernel(edges)
    assert float((exact - least).abs().min()) > 1e-5, "no value may be so close to the threshold that rounding decides"
    wanted = torch.where(exact >= least, exact, 0.0)
    found = Threshold(least)(normal(edges.num_nodes, 1), edges)
    torch.testing.assert_close(matrix(found), wanted, atol=2e-6, rtol=0)
    assert found.num_edges == int((exact >= least).sum())


@pytest.mark.parametrize(
    ("stencil", "function"),
    [(TopK(8), "largest_entries"), (Threshold(0.008), "entries_above")],
    ids=lambda value: type(value).__name__,
)
def test_large_graphs_are_pushed_to_the_same_edges(
    stencil: Stencil, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = power_law(200, 600, seed=1)
    solved = matrix(stencil(data.x, Edges.build(data.edge_index, num_nodes=200)))
    pytest.importorskip("numba")
    calls: list[str] = []
    push: Callable[..., Tensor] = getattr(digl, function)

    def counted(*args: Any, **kwargs: Any) -> Tensor:
        calls.append(function)
        return push(*args, **kwargs)

    monkeypatch.setattr(digl, "SMALL", 0)
    monkeypatch.setattr(digl, function, counted)
    pushed = matrix(stencil(data.x, Edges.build(data.edge_index, num_nodes=200)))
    assert calls == [function]
    both = (solved > 0) & (pushed > 0)
    assert int(both.sum()) >= 0.99 * int((solved > 0).sum())
    assert int(both.sum()) >= 0.99 * int((pushed > 0).sum())
    torch.testing.assert_close(pushed[both], solved[both], atol=1e-4, rtol=0)


def test_threshold_is_symmetric_and_topk_need_not_be() -> None:
    z, edges = normal(6, 1), crooked()
    above, largest = matrix(Threshold(0.15)(z, edges)), matrix(TopK(2)(z, edges))
    assert torch.equal(above > 0, (above > 0).T)
    assert not torch.equal(largest > 0, (largest > 0).T)
    mutual = matrix(Chain(TopK(2), Symmetric())(z, edges))
    torch.testing.assert_close(mutual, torch.maximum(largest, largest.T))
    assert Chain(TopK(2), Unweighted())(z, edges).weight is None


def test_the_random_walk_on_the_rewired_graph_is_the_normalised_kernel() -> None:
    z, edges = normal(6, 1), crooked()
    rewired = TopK(6)(z, edges)
    exact = kernel(edges)
    found = dense(RandomWalk()(z, rewired), rewired).double()
    torch.testing.assert_close(found, exact / exact.sum(1, keepdim=True), atol=1e-5, rtol=0)


def test_nodes_without_edges_keep_a_loop() -> None:
    alone = Edges.build(torch.zeros(2, 0, dtype=torch.long), num_nodes=3)
    for stencil in (TopK(2), Threshold(0.5)):
        found = matrix(stencil(normal(3, 1), alone))
        torch.testing.assert_close(found, torch.eye(3, dtype=torch.float64), atol=2e-6, rtol=0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TopK(0), "TopK needs `k` at least 1; got 0"),
        (lambda: TopK(2, restart=1.0), r"TopK needs `restart` between 0 and 1; got 1\.0"),
        (lambda: Threshold(0.0), r"Threshold needs `least` between 0 and 1; got 0\.0"),
        (lambda: Threshold(0.1, restart=0.0), r"Threshold needs `restart` between 0 and 1; got 0\.0"),
        (lambda: TopK(2)(normal(6, 1), ragged()), "TopK needs an undirected graph"),
        (lambda: Threshold(0.1)(normal(6, 1), ragged()), "Threshold needs an undirected graph"),
    ],
)
def test_refusals(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


TOP = 64


def pushed(edges: Edges) -> Tensor:
    pytest.importorskip("numba")
    return largest_entries(edges.with_loops(1.0), restart=0.05, top=TOP).to_dense()


def solved_by_the_stencil(edges: Edges) -> Tensor:
    return matrix(TopK(TOP)(torch.zeros(edges.num_nodes, 1), edges))


def around(edges: Edges, count: int) -> Edges:
    """Return the subgraph of at least ``count`` nodes around the first one."""
    near = torch.arange(edges.num_nodes) == 0
    while int(near.sum()) < count:
        near = near.index_fill(0, edges.j[near[edges.i]], True)
    number = near.cumsum(0) - 1
    within = near[edges.i] & near[edges.j]
    return Edges.build(number[edges.edge_index[:, within]], num_nodes=int(near.sum()))


def overlap_with(exact: Tensor, found: Tensor) -> float:
    """Return the share of the largest entries of each row that were found."""
    shares = []
    for row, found_row in zip(exact, found, strict=True):
        wanted = row.topk(min(TOP, int((row > 1e-12).sum()))).indices
        assert int((found_row > 0).sum()) == len(wanted)
        shares.append(float((found_row[wanted] > 0).double().mean()))
    return sum(shares) / len(shares)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("way", [solved_by_the_stencil, pushed])
def test_cora_keeps_the_largest_entries_of_the_dense_inverse(
    real: Callable[[str], Dataset], way: Callable[[Edges], Tensor]
) -> None:
    data = real("cora")
    edges = Edges.build(data.edge_index, num_nodes=data.num_nodes)
    edges = edges if way is pushed else around(edges, 600)  # the stencil solves for every column
    exact, found = kernel(edges), way(edges).double()
    assert overlap_with(exact, found) >= 0.99
    assert float((found - exact)[found > 0].abs().max()) <= 1e-4


@pytest.mark.data
@pytest.mark.slow
def test_ppr_of_cora_keeps_the_largest_entries_of_the_dense_inverse(real: Callable[[str], Dataset]) -> None:
    data = real("cora")
    edges = around(Edges.build(data.edge_index, num_nodes=data.num_nodes), 600)
    exact, found = kernel(edges), PPR(restart=0.05, top=TOP)(edges).to_dense().double()
    assert overlap_with(exact, found) >= 0.99
    kept = torch.where(found > 0, exact, 0.0)
    assert float((found - kept / kept.sum(0)).abs().max()) <= 1e-4
