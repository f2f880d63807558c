"""Heat positions against the dense exponential."""

import math

import pytest
import torch
from checks import bare, crooked, dense, kite
from torch import Tensor

from beltrami.graph import Edges
from beltrami.position import PPR, Encoding, Heat

GRAPHS = {"kite": kite(), "crooked": crooked()}


def kernel(edges: Edges, time: float) -> Tensor:
    """exp(-t (I - S)), S = D^-1/2 (A + I) D^-1/2."""
    eye = torch.eye(edges.num_nodes, dtype=torch.float64)
    a = dense(torch.ones(edges.num_edges, dtype=torch.float64), edges) + eye
    root = a.sum(1).rsqrt()
    exact: Tensor = torch.linalg.matrix_exp(-time * (eye - root[:, None] * a * root))
    return exact


@pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())
@pytest.mark.parametrize("time", [0.2, 3.0, 40.0])
@pytest.mark.parametrize("top", [64, None])
def test_all_entries_are_the_dense_exponential_with_columns_scaled(edges: Edges, time: float, top: int | None) -> None:
    exact = kernel(edges, time)
    found = Heat(time=time, top=top)(edges)
    assert found.layout == (torch.strided if top is None else torch.sparse_coo)
    torch.testing.assert_close(found.to_dense().double(), exact / exact.sum(0), atol=2e-6, rtol=0)


def test_top_keeps_the_largest_entries_of_each_row() -> None:
    exact, found = kernel(crooked(), 1.0), Heat(time=1.0, top=2)(crooked()).to_dense()
    assert (found > 0).sum(1).tolist() == [2] * 6
    for row in range(6):
        assert set(found[row].nonzero()[:, 0].tolist()) == set(exact[row].topk(2).indices.tolist())


def test_a_long_time_forgets_where_it_began() -> None:
    """Rows become the root of the degrees, whatever the node: H_t -> v v^T / |v|^2, columns then scaled to one."""
    degree = (kite().in_degree() + 1).float()
    found = Heat(time=200.0, top=None)(kite())
    torch.testing.assert_close(found, (degree.sqrt() / degree.sqrt().sum())[:, None].expand(4, 4))


def test_without_edges_every_node_is_where_it_began() -> None:
    torch.testing.assert_close(Heat(time=1.0)(bare()).to_dense(), torch.eye(4))


@pytest.mark.parametrize("make", [PPR, lambda progress: Heat(time=1.0, progress=progress)], ids=["PPR", "Heat"])
def test_progress_is_told(make: type[PPR]) -> None:
    seen: list[tuple[str, int, int | None]] = []
    encoding: Encoding = make(progress=lambda *said: seen.append(said))
    encoding(kite())
    assert seen == [(type(encoding).__name__, 4, 4)]


@pytest.mark.parametrize("time", [0.0, -1.0, math.inf, math.nan])
def test_a_time_that_is_no_time_is_refused(time: float) -> None:
    with pytest.raises(ValueError, match="Heat needs a positive, finite `time`"):
        Heat(time=time)


def test_keeping_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="Heat needs `top` at least 1; got 0"):
        Heat(time=1.0, top=0)
