"""PageRank positions against the dense inverse."""

import pytest
import torch
from checks import ENCODINGS, bare, check_encoding, crooked, dense, kite
from torch import Tensor

from beltrami.data.synthetic import power_law
from beltrami.graph import Edges
from beltrami.position import PPR, Encoding

CROOKED = crooked()
GRAPHS = {"kite": kite(), "crooked": CROOKED}


def kernel(edges: Edges, restart: float = 0.05) -> Tensor:
    """rho (I - (1 - rho) S)^-1, S = D^-1/2 (A + I) D^-1/2."""
    eye = torch.eye(edges.num_nodes, dtype=torch.float64)
    a = dense(torch.ones(edges.num_edges, dtype=torch.float64), edges) + eye
    root = a.sum(1).rsqrt()
    inverse: Tensor = torch.linalg.inv(eye - (1 - restart) * root[:, None] * a * root)
    return restart * inverse


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda e: f"{type(e).__name__}{list(vars(e).values())}")
def test_every_encoding_passes_its_battery(encoding: Encoding) -> None:
    check_encoding(encoding, CROOKED)


@pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())
@pytest.mark.parametrize("restart", [0.05, 0.3])
def test_all_entries_are_the_dense_inverse_with_columns_scaled(edges: Edges, restart: float) -> None:
    exact = kernel(edges, restart)
    found = PPR(restart=restart, top=64)(edges).to_dense().double()
    torch.testing.assert_close(found, exact / exact.sum(0), atol=2e-6, rtol=0)


@pytest.mark.parametrize("top", [3, 64])
def test_columns_sum_to_one(top: int) -> None:
    torch.testing.assert_close(PPR(top=top)(CROOKED).to_dense().sum(0), torch.ones(6))


@pytest.mark.parametrize("top", [1, 2, 4])
def test_top_keeps_the_largest_entries_of_each_row(top: int) -> None:
    exact = kernel(CROOKED)
    kept = torch.zeros_like(exact)
    for row in range(6):
        for column in sorted(range(6), key=lambda k: -float(exact[row, k]))[:top]:
            kept[row, column] = exact[row, column]
    total = kept.sum(0)
    wanted = kept / torch.where(total > 0, total, torch.ones_like(total))
    found = PPR(top=top)(CROOKED).to_dense()
    assert (found > 0).sum(1).tolist() == [top] * 6
    torch.testing.assert_close(found.double(), wanted, atol=1e-5, rtol=0)


def test_positions_are_sparse_and_coalesced() -> None:
    u = PPR(top=2)(CROOKED)
    assert u.layout == torch.sparse_coo
    assert u.is_coalesced()
    assert u.shape == (6, 6)


def test_without_edges_every_node_is_where_it_began() -> None:
    torch.testing.assert_close(PPR()(bare()).to_dense(), torch.eye(4))


@pytest.mark.parametrize("restart", [0.0, 1.0, 1.5, float("nan")])
def test_a_restart_that_is_no_probability_is_refused(restart: float) -> None:
    with pytest.raises(ValueError, match="PPR needs `restart` between 0 and 1"):
        PPR(restart=restart)


def test_keeping_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="PPR needs `top` at least 1; got 0"):
        PPR(top=0)


def test_large_graphs_are_pushed_to_the_same_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    data = power_law(600, 1800, seed=0)
    edges = Edges.build(data.edge_index, num_nodes=600)
    solved = PPR(top=16)(edges).to_dense()
    monkeypatch.setattr("beltrami.position.ppr.LARGE", 100)
    pushed = PPR(top=16)(edges).to_dense()
    assert not torch.equal(pushed, solved)
    both = (pushed > 0) & (solved > 0)
    assert float(both.sum() / (solved > 0).sum()) > 0.99
    assert float((pushed - solved).norm() / solved.norm()) < 0.01  # an entry missed moves its column's sum as well
