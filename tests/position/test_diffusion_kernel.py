"""Positions from personalised PageRank and the heat kernel against the dense inverse and exponential."""

import math
from collections.abc import Callable

import pytest
import torch
from checks import bare, crooked, dense, kite
from torch import Tensor

from beltrami.data.synthetic import power_law
from beltrami.graph import Edges
from beltrami.position import PPR, Encoding, Heat, spectral

GRAPHS = {"kite": kite(), "crooked": crooked()}
graphs = pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())


def symmetric(edges: Edges) -> Tensor:
    """Return S = D^-1/2 (A + I) D^-1/2."""
    a = dense(torch.ones(edges.num_edges, dtype=torch.float64), edges) + torch.eye(edges.num_nodes, dtype=torch.float64)
    root = a.sum(1).rsqrt()
    return root[:, None] * a * root


def pagerank(edges: Edges, restart: float = 0.05) -> Tensor:
    """Return rho (I - (1 - rho) S)^-1."""
    eye = torch.eye(edges.num_nodes, dtype=torch.float64)
    inverse: Tensor = torch.linalg.inv(eye - (1 - restart) * symmetric(edges))
    return restart * inverse


def heat(edges: Edges, time: float) -> Tensor:
    """Return exp(-t (I - S))."""
    eye = torch.eye(edges.num_nodes, dtype=torch.float64)
    exact: Tensor = torch.linalg.matrix_exp(-time * (eye - symmetric(edges)))
    return exact


@graphs
@pytest.mark.parametrize("restart", [0.05, 0.3])
def test_pagerank_is_the_dense_inverse_with_columns_scaled(edges: Edges, restart: float) -> None:
    exact = pagerank(edges, restart)
    found = PPR(restart=restart, top=64)(edges).to_dense().double()
    torch.testing.assert_close(found, exact / exact.sum(0), atol=2e-6, rtol=0)


@graphs
@pytest.mark.parametrize("time", [0.2, 3.0, 40.0])
@pytest.mark.parametrize("top", [64, None])
def test_heat_is_the_dense_exponential_with_columns_scaled(edges: Edges, time: float, top: int | None) -> None:
    exact = heat(edges, time)
    found = Heat(time=time, top=top)(edges)
    assert found.layout == (torch.strided if top is None else torch.sparse_coo)
    torch.testing.assert_close(found.to_dense().double(), exact / exact.sum(0), atol=2e-6, rtol=0)


@pytest.mark.parametrize("top", [1, 2, 4])
@pytest.mark.parametrize(
    ("make", "exact"),
    [
        (lambda top: PPR(top=top), pagerank(crooked())),
        (lambda top: Heat(time=1.0, top=top), heat(crooked(), 1.0)),
    ],
    ids=["PPR", "Heat"],
)
def test_top_keeps_the_largest_entries_of_each_row(make: Callable[[int], Encoding], exact: Tensor, top: int) -> None:
    kept = torch.zeros_like(exact)
    for row in range(6):
        for column in sorted(range(6), key=lambda k: -float(exact[row, k]))[:top]:
            kept[row, column] = exact[row, column]
    total = kept.sum(0)
    wanted = kept / torch.where(total > 0, total, torch.ones_like(total))
    found = make(top)(crooked())
    assert found.layout == torch.sparse_coo
    assert found.is_coalesced()
    assert (found.to_dense() > 0).sum(1).tolist() == [top] * 6
    torch.testing.assert_close(found.to_dense().double(), wanted, atol=1e-5, rtol=0)


def test_after_a_long_time_heat_does_not_depend_on_the_start() -> None:
    """Rows become the root of the degrees for every node: H_t -> v v^T / |v|^2, columns then scaled to one."""
    degree = (kite().in_degree() + 1).float()
    found = Heat(time=200.0, top=None)(kite())
    torch.testing.assert_close(found, (degree.sqrt() / degree.sqrt().sum())[:, None].expand(4, 4))


def test_without_edges_the_kernels_are_the_identity() -> None:
    torch.testing.assert_close(PPR()(bare()).to_dense(), torch.eye(4))
    torch.testing.assert_close(Heat(time=1.0)(bare()).to_dense(), torch.eye(4))


@pytest.mark.parametrize("make", [PPR, lambda progress: Heat(time=1.0, progress=progress)], ids=["PPR", "Heat"])
def test_progress_receives_the_columns(make: type[PPR]) -> None:
    seen: list[tuple[str, int, int | None]] = []
    encoding: Encoding = make(progress=lambda *report: seen.append(report))
    encoding(kite())
    assert seen == [(type(encoding).__name__, 4, 4)]


@pytest.mark.slow
def test_large_graphs_are_pushed_to_the_same_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    data = power_law(300, 900, seed=0)
    edges = Edges.build(data.edge_index, num_nodes=300)
    solved = PPR(top=16)(edges).to_dense()
    monkeypatch.setattr(spectral, "LARGE", 100)
    pushed = PPR(top=16)(edges).to_dense()
    assert not torch.equal(pushed, solved)
    both = (pushed > 0) & (solved > 0)
    assert float(both.sum() / (solved > 0).sum()) > 0.99
    assert float((pushed - solved).norm() / solved.norm()) < 0.01  # a missed entry changes the sum of its column too


@pytest.mark.parametrize("restart", [0.0, 1.0, 1.5, math.nan])
def test_a_restart_that_is_no_probability_is_refused(restart: float) -> None:
    with pytest.raises(ValueError, match="PPR needs `restart` between 0 and 1"):
        PPR(restart=restart)


@pytest.mark.parametrize("time", [0.0, -1.0, math.inf, math.nan])
def test_a_time_that_is_not_positive_and_finite_is_refused(time: float) -> None:
    with pytest.raises(ValueError, match="Heat needs a positive, finite `time`"):
        Heat(time=time)


def test_keeping_no_entries_is_refused() -> None:
    with pytest.raises(ValueError, match="PPR needs `top` at least 1; got 0"):
        PPR(top=0)
    with pytest.raises(ValueError, match="Heat needs `top` at least 1; got 0"):
        Heat(time=1.0, top=0)
