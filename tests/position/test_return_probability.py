"""Return probabilities against powers of the dense transition matrix."""

import pytest
import torch
from checks import bare, crooked, kite, pairs, ragged
from torch import Tensor

from beltrami.graph import Edges
from beltrami.position import ReturnProbabilities, return_probability

GRAPHS = {"kite": kite(), "crooked": crooked(), "ragged": ragged(), "weighted": ragged(weighted=True), "bare": bare()}


def transition(edges: Edges) -> Tensor:
    """Probability of each step from j to i, (j, i): along the edges, and nowhere from where none leaves."""
    p = torch.zeros(edges.num_nodes, edges.num_nodes, dtype=torch.float64)
    for e, (i, j) in enumerate(pairs(edges)):
        p[j, i] += 1.0 if edges.weight is None else float(edges.weight[e])
    for node in range(edges.num_nodes):
        if not p[node].sum():
            p[node, node] = 1.0
    return p / p.sum(1, keepdim=True)


@pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())
def test_they_are_the_diagonals_of_the_powers(edges: Edges) -> None:
    p = transition(edges)
    exact = torch.stack([torch.linalg.matrix_power(p, k).diagonal() for k in range(1, 8)], dim=1)
    found = ReturnProbabilities(7)(edges)
    assert found.shape == (edges.num_nodes, 7)
    torch.testing.assert_close(found.double(), exact, atol=1e-6, rtol=0)


def test_blocks_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ReturnProbabilities(5)(crooked())
    monkeypatch.setattr(return_probability, "BLOCK", 4)
    seen: list[tuple[str, int, int | None]] = []
    pieces = ReturnProbabilities(5, progress=lambda *said: seen.append(said))(crooked())
    torch.testing.assert_close(pieces, whole)
    assert seen == [("ReturnProbabilities", 4, 6), ("ReturnProbabilities", 6, 6)]


def test_nodes_that_a_symmetry_exchanges_share_a_position() -> None:
    u = ReturnProbabilities(6)(kite())
    assert torch.equal(u[0], u[1])
    assert not torch.allclose(u[0], u[2])


def test_no_steps_are_refused() -> None:
    with pytest.raises(ValueError, match="ReturnProbabilities needs `steps` at least 1; got 0"):
        ReturnProbabilities(0)
