"""Statistics of graphs against loops over their edges."""

import math

import pytest
import torch
from checks import GRAPHS, bare, crooked, kite, pairs, ragged

from beltrami.graph import Edges
from beltrami.graph.statistics import Rewiring, Statistics, homophily


def random_graph(seed: int, *, nodes: int = 12, edges: int = 14) -> Edges:
    ends = torch.randint(nodes, (2, edges), generator=torch.Generator().manual_seed(seed))
    return Edges.build(ends, num_nodes=nodes)


def components_by_search(edges: Edges) -> int:
    unseen, count = set(range(edges.num_nodes)), 0
    while unseen:
        reached = [unseen.pop()]
        while reached:
            node = reached.pop()
            near = {j for i, j in pairs(edges) if i == node} | {i for i, j in pairs(edges) if j == node}
            reached += near & unseen
            unseen -= near
        count += 1
    return count


ALL = [*GRAPHS.values(), crooked(), kite().with_loops(1.0), *(random_graph(seed) for seed in range(3))]


@pytest.mark.parametrize("edges", ALL, ids=repr)
def test_statistics_equal_those_counted_by_loops(edges: Edges) -> None:
    found = Statistics.of(edges)
    degree = [0] * edges.num_nodes
    for i, j in pairs(edges):
        degree[i] += i != j
    assert (found.nodes, found.edges) == (edges.num_nodes, sum(degree))
    assert found.loops == sum(i == j for i, j in pairs(edges))
    assert (found.min_degree, found.max_degree) == (min(degree), max(degree))
    assert found.mean_degree == pytest.approx(sum(degree) / edges.num_nodes)
    assert found.components == components_by_search(edges)


@pytest.mark.parametrize("seed", range(3))
def test_overlap_and_homophily_equal_those_counted_by_loops(seed: int) -> None:
    old, new = random_graph(seed, nodes=6), random_graph(seed + 50, nodes=6)
    y = torch.randint(3, (6,), generator=torch.Generator().manual_seed(seed))
    before, after = ({(i, j) for i, j in pairs(edges) if i != j} for edges in (old, new))
    overlap = Rewiring.of(old, new, y)
    assert overlap.kept == pytest.approx(len(before & after) / len(before))
    assert overlap.known == pytest.approx(len(before & after) / len(after))
    alike = [bool(y[i] == y[j]) for i, j in pairs(old) if i != j]
    assert homophily(old, y) == pytest.approx(sum(alike) / len(alike))


def test_a_graph_overlaps_fully_with_itself_and_loops_change_nothing() -> None:
    y = torch.tensor([0, 0, 1, 1])
    found = Rewiring.of(kite(), kite().with_loops(2.0), y)
    assert (found.kept, found.known) == (1.0, 1.0)
    assert homophily(kite().with_loops(2.0), y) == homophily(kite(), y) == 0.5


def test_a_share_of_no_edges_is_nan() -> None:
    y = torch.zeros(4, dtype=torch.int64)
    assert math.isnan(homophily(bare(), y))
    assert Rewiring.of(kite(), bare(), y).kept == 0
    assert math.isnan(Rewiring.of(kite(), bare(), y).known)


def test_rewiring_describes_both_graphs_in_their_order() -> None:
    y = torch.tensor([0, 0, 1, 1])
    found = Rewiring.of(kite(), bare(), y)
    assert (found.before, found.after) == (Statistics.of(kite()), Statistics.of(bare()))
    assert found.kept == 0
    assert found.homophily_before == 0.5
    assert math.isnan(found.homophily_after)


def test_graphs_on_other_nodes_are_refused() -> None:
    with pytest.raises(ValueError, match="must have the same nodes; got 4 and 6"):
        Rewiring.of(kite(), ragged(), torch.zeros(4))
    with pytest.raises(ValueError, match=r"a class for each of 4 nodes; got shape \(3,\)"):
        homophily(kite(), torch.zeros(3))
