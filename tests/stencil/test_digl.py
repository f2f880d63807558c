"""DIGL's graphs against the dense inverse."""

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
from beltrami.graph.pagerank import push_torch
from beltrami.graph.pagerank.push import PushBackend, entries_above, largest_entries
from beltrami.position import PPR
from beltrami.stencil import Chain, Stencil, Symmetric, Threshold, TopK, Unweighted, digl

GRAPHS = {"kite": kite(), "crooked": crooked()}
ON_GRAPHS = pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())


def kernel(edges: Edges, restart: float = 0.05) -> Tensor:
    """rho (I - (1 - rho) S)^-1, S = D^-1/2 (A + I) D^-1/2."""
    a = torch.eye(edges.num_nodes, dtype=torch.float64)
    a.index_put_((edges.i, edges.j), torch.ones(edges.num_edges, dtype=torch.float64), accumulate=True)
    root = a.sum(1).rsqrt()
    inverse: Tensor = torch.linalg.inv(
        torch.eye(len(a), dtype=torch.float64) - (1 - restart) * root[:, None] * a * root
    )
    return restart * inverse


def matrix(edges: Edges) -> Tensor:
    """Entry (i, j) is the weight of the edge j -> i."""
    assert edges.weight is not None
    return torch.zeros(edges.num_nodes, edges.num_nodes).index_put_((edges.i, edges.j), edges.weight).double()


@ON_GRAPHS
@pytest.mark.parametrize("k", [1, 2, 3, 9])
@pytest.mark.parametrize("restart", [0.05, 0.4])
def test_topk_keeps_the_largest_entries_of_each_row(edges: Edges, k: int, restart: float) -> None:
    exact = kernel(edges, restart)
    wanted = torch.zeros_like(exact)
    for i, row in enumerate(exact.tolist()):
        for j in sorted(range(len(row)), key=lambda j: -row[j])[:k]:
            wanted[i, j] = row[j]
    found = TopK(k, restart=restart)(normal(edges.num_nodes, 1), edges)
    assert int(found.in_degree().max()) == min(k, edges.num_nodes)
    if edges is not GRAPHS["kite"] or k in (1, 9):  # two nodes of the kite are alike: either may be taken
        torch.testing.assert_close(matrix(found), wanted, atol=2e-6, rtol=0)
    rows = (matrix(found).sort(descending=True).values, wanted.sort(descending=True).values)
    torch.testing.assert_close(*rows, atol=2e-6, rtol=0)


@ON_GRAPHS
@pytest.mark.parametrize("least", [0.01, 0.1, 0.17, 0.5])
def test_threshold_keeps_what_reaches_it(edges: Edges, least: float) -> None:
    exact = kernel(edges)
    assert float((exact - least).abs().min()) > 1e-5, "a value too near to the threshold says nothing"
    wanted = torch.where(exact >= least, exact, 0.0)
    found = Threshold(least)(normal(edges.num_nodes, 1), edges)
    torch.testing.assert_close(matrix(found), wanted, atol=2e-6, rtol=0)
    assert found.num_edges == int((exact >= least).sum())


@pytest.mark.parametrize("stencil", [TopK(8), Threshold(0.004)], ids=lambda s: type(s).__name__)
def test_large_graphs_are_pushed_to_the_same_edges(stencil: Stencil, monkeypatch: pytest.MonkeyPatch) -> None:
    data = power_law(400, 1200, seed=1)
    edges = Edges.build(data.edge_index, num_nodes=400)
    solved = matrix(stencil(data.x, edges))
    monkeypatch.setattr(digl, "SMALL", 0)
    calls: list[str] = []

    def told(name: str, push: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def run(*args: Any, **kwargs: Any) -> Tensor:
            calls.append(name)
            return push(*args, **kwargs)

        return run

    monkeypatch.setattr(digl, "largest_entries", told("TopK", largest_entries))
    monkeypatch.setattr(digl, "entries_above", told("Threshold", entries_above))
    again = Edges.build(data.edge_index, num_nodes=400)
    pushed = matrix(stencil(data.x, again))
    assert calls == [type(stencil).__name__]
    both = (solved > 0) & (pushed > 0)
    assert int(both.sum()) >= 0.99 * int((solved > 0).sum())
    assert int(both.sum()) >= 0.99 * int((pushed > 0).sum())
    torch.testing.assert_close(pushed[both], solved[both], atol=1e-4, rtol=0)


def test_threshold_goes_both_ways_and_topk_need_not() -> None:
    z, edges = normal(6, 1), crooked()
    above, largest = matrix(Threshold(0.15)(z, edges)), matrix(TopK(2)(z, edges))
    assert torch.equal(above > 0, (above > 0).T)
    assert not torch.equal(largest > 0, (largest > 0).T)
    mutual = matrix(Chain(TopK(2), Symmetric())(z, edges))
    torch.testing.assert_close(mutual, torch.maximum(largest, largest.T))
    assert Chain(TopK(2), Unweighted())(z, edges).weight is None


def test_the_random_walk_on_it_diffuses_by_the_kernel() -> None:
    """Rows of DIGL's matrix over their sums."""
    z, edges = normal(6, 1), crooked()
    rewired = TopK(6)(z, edges)
    exact = kernel(edges)
    found = dense(RandomWalk()(z, rewired), rewired).double()
    torch.testing.assert_close(found, exact / exact.sum(1, keepdim=True), atol=1e-5, rtol=0)


def test_nodes_without_edges_keep_themselves() -> None:
    alone = Edges.build(torch.zeros(2, 0, dtype=torch.long), num_nodes=3)
    for stencil in (TopK(2), Threshold(0.5)):
        found = matrix(stencil(normal(3, 1), alone))
        torch.testing.assert_close(found, torch.eye(3, dtype=torch.float64), atol=2e-6, rtol=0)


def test_the_same_graph_is_rewired_once() -> None:
    stencil, edges = TopK(2), kite()
    assert stencil(normal(4, 1), edges) is stencil(normal(4, 1, seed=1), edges)


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


def _engine(name: str) -> PushBackend:
    if name == "push_torch":
        return push_torch
    pytest.importorskip("numba")
    from beltrami.graph.pagerank import push_numba

    return push_numba


WAYS: dict[str, Callable[[Edges], Tensor]] = {
    "solved": lambda edges: matrix(TopK(TOP)(torch.zeros(edges.num_nodes, 1), edges)),
    "compiled": lambda edges: largest_entries(
        edges.with_loops(1.0), restart=0.05, top=TOP, backend=_engine("compiled")
    ).to_dense(),
    "push_torch": lambda edges: largest_entries(
        edges.with_loops(1.0), restart=0.05, top=TOP, backend=_engine("push_torch")
    ).to_dense(),
}


def around(edges: Edges, count: int) -> Edges:
    """At least ``count`` nodes around the first one, with the edges between them."""
    near = torch.arange(edges.num_nodes) == 0
    while int(near.sum()) < count:
        near = near.index_fill(0, edges.j[near[edges.i]], True)
    number = near.cumsum(0) - 1
    within = near[edges.i] & near[edges.j]
    return Edges.build(number[edges.edge_index[:, within]], num_nodes=int(near.sum()))


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_cora_keeps_the_largest_entries_of_the_dense_inverse(real: Callable[[str], Dataset], way: str) -> None:
    data = real("cora")
    edges = Edges.build(data.edge_index, num_nodes=data.num_nodes)
    edges = around(edges, 600) if way == "push_torch" else edges  # which takes its time without a compiler
    exact, found = kernel(edges), WAYS[way](edges).double()
    overlap = overlap_with(exact, found)
    error = float((found - exact)[found > 0].abs().max())
    assert overlap >= 0.99
    assert error <= 1e-4


@pytest.mark.data
@pytest.mark.slow
def test_ppr_of_cora_keeps_the_largest_entries_of_the_dense_inverse(real: Callable[[str], Dataset]) -> None:
    data = real("cora")
    edges = Edges.build(data.edge_index, num_nodes=data.num_nodes)
    exact, found = kernel(edges), PPR(restart=0.05, top=TOP)(edges).to_dense().double()
    assert overlap_with(exact, found) >= 0.99
    kept = torch.where(found > 0, exact, 0.0)
    assert float((found - kept / kept.sum(0)).abs().max()) <= 1e-4


def overlap_with(exact: Tensor, found: Tensor) -> float:
    """Share of the largest entries of each row that were found."""
    shares = []
    for row, mine in zip(exact, found, strict=True):
        wanted = row.topk(min(TOP, int((row > 1e-12).sum()))).indices
        assert int((mine > 0).sum()) == len(wanted)
        shares.append(float((mine[wanted] > 0).double().mean()))
    return sum(shares) / len(shares)
