"""The random walk: weights of the graph alone."""

import pytest
import torch
from checks import dense, kite, normal, pairs, ragged

from beltrami.diffusivity import RandomWalk
from beltrami.graph import Both, Columns, Edges, Link, Rows, softmax_link, squareplus_link

links = pytest.mark.parametrize("link", [softmax_link, squareplus_link])


@links
def test_rows_are_the_transition_matrix_of_the_random_walk(link: Link) -> None:
    edges = kite()
    adjacency = dense(torch.ones(8, dtype=torch.float64), edges)
    found = dense(RandomWalk(Rows(link))(normal(4, 2), edges), edges)
    torch.testing.assert_close(found, adjacency / adjacency.sum(1, keepdim=True))


@links
def test_the_graphs_own_weights_count(link: Link) -> None:
    edges = ragged(weighted=True)
    assert edges.weight is not None
    w = edges.weight.tolist()
    for over in (Rows, Columns):
        found = RandomWalk(over(link))(normal(6, 2), edges)
        for e, (i, j) in enumerate(pairs(edges)):
            group = [w[k] for k, (p, q) in enumerate(pairs(edges)) if (p == i if over is Rows else q == j)]
            assert float(found[e]) == pytest.approx(w[e] / sum(group), abs=1e-14)


def test_both_with_loops_is_the_operator_of_gcn() -> None:
    edges = kite().with_loops(1.0)
    adjacency = dense(torch.ones(12, dtype=torch.float64), edges)
    root = adjacency.sum(1).rsqrt()
    found = dense(RandomWalk(Both())(normal(4, 2), edges), edges)
    torch.testing.assert_close(found, root[:, None] * adjacency * root)


def test_the_state_does_not_matter_and_nothing_is_learned() -> None:
    edges: Edges = kite()
    a = RandomWalk()
    assert torch.equal(a(normal(4, 2), edges), a(100 * normal(4, 7, seed=1), edges))
    assert list(a.parameters()) == []
