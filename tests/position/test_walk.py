"""Random walks against their transition probabilities, and return probabilities against matrix powers."""

from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from checks import bare, crooked, kite, pairs, ragged
from scipy.stats import chi2
from torch import Tensor

from beltrami.graph import Edges
from beltrami.position import ReturnProbabilities, walk
from beltrami.position.walk import Walker

GRAPHS = {"kite": kite(), "crooked": crooked(), "ragged": ragged(), "weighted": ragged(weighted=True), "bare": bare()}
WITH_EDGES = {name: edges for name, edges in GRAPHS.items() if edges.num_edges}
WALKS = 10_000


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def starts(edges: Edges, walks: int = WALKS) -> Tensor:
    return torch.arange(walks) % edges.num_nodes


def weights(edges: Edges) -> dict[int, dict[int, float]]:
    """Return the weight of the step from each node to each other, by a loop over the edges."""
    found: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for e, (i, j) in enumerate(pairs(edges)):
        found[j][i] += 1.0 if edges.weight is None else float(edges.weight[e])
    return found


def p_value(
    counts: dict[tuple[int, ...], Counter[int]], expected: Callable[[tuple[int, ...]], dict[int, float]]
) -> float:
    """Return the p-value of the chi-square test of all counts against the expected probabilities."""
    statistic, freedom = 0.0, 0
    for past, counted in counts.items():
        weight = expected(past)
        assert set(counted) <= set(weight), f"an impossible step from {past}"
        for there, w in weight.items():
            mean = counted.total() * w / sum(weight.values())
            statistic += (counted[there] - mean) ** 2 / mean
        freedom += len(weight) - 1
    return float(chi2.sf(statistic, freedom))


def count(walks: Tensor, memory: int) -> dict[tuple[int, ...], Counter[int]]:
    """Return how often each node followed each sequence of ``memory`` nodes."""
    counts: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for run in walks.unfold(1, memory + 1, 1).flatten(0, 1).tolist():
        counts[tuple(run[:-1])][run[-1]] += 1
    return counts


@pytest.mark.parametrize("edges", WITH_EDGES.values(), ids=WITH_EDGES.keys())
def test_steps_have_the_probabilities_of_the_weights(edges: Edges) -> None:
    weight = weights(edges)
    walks = Walker(edges)(starts(edges), length=4, generator=generator())
    assert p_value(count(walks, 1), lambda past: weight[past[0]] or {past[0]: 1.0}) > 0.01


def test_the_chi_square_test_detects_other_probabilities() -> None:
    """The test above has power: it distinguishes weighted steps from uniform ones."""
    edges = ragged(weighted=True)
    uniform = {j: dict.fromkeys(ends, 1.0) for j, ends in weights(edges).items()}
    walks = Walker(edges)(starts(edges), length=4, generator=generator())
    assert p_value(count(walks, 1), lambda past: uniform.get(past[0]) or {past[0]: 1.0}) < 1e-6


def test_a_walk_begins_at_its_start_and_follows_edges() -> None:
    edge = {(j, i) for i, j in pairs(crooked())}
    walks = Walker(crooked())(torch.tensor([3, 0, 3]), length=20, generator=generator())
    assert walks.shape == (3, 20)
    assert walks[:, 0].tolist() == [3, 0, 3]
    assert all((a, b) in edge for path in walks.tolist() for a, b in pairwise(path))


def test_a_walk_stays_on_a_node_that_no_edge_leaves() -> None:
    walks = Walker(ragged())(torch.tensor([4, 5]), length=5, generator=generator())
    assert walks.tolist() == [[4] * 5, [5] * 5]
    assert Walker(bare())(torch.arange(4), length=3, generator=generator()).tolist() == [[k] * 3 for k in range(4)]


def test_walks_depend_on_the_seed_alone() -> None:
    walker = Walker(crooked())
    first, again, other = (walker(torch.arange(6), length=30, generator=generator(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.gpu
def test_walks_on_the_gpu_take_a_generator_from_the_cpu() -> None:
    edges = ragged(weighted=True).to("cuda")
    first, again = (Walker(edges)(starts(edges), length=3, generator=generator()) for _ in range(2))
    assert first.is_cuda
    assert torch.equal(first, again)


def transition(edges: Edges) -> Tensor:
    """Return the probability of each step from j to i, (j, i); a node that no edge leaves keeps its walks."""
    p = torch.zeros(edges.num_nodes, edges.num_nodes, dtype=torch.float64)
    for e, (i, j) in enumerate(pairs(edges)):
        p[j, i] += 1.0 if edges.weight is None else float(edges.weight[e])
    for node in range(edges.num_nodes):
        if not p[node].sum():
            p[node, node] = 1.0
    return p / p.sum(1, keepdim=True)


@pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS.keys())
def test_return_probabilities_are_the_diagonals_of_the_powers(edges: Edges) -> None:
    p = transition(edges)
    exact = torch.stack([torch.linalg.matrix_power(p, k).diagonal() for k in range(1, 8)], dim=1)
    found = ReturnProbabilities(7)(edges)
    assert found.shape == (edges.num_nodes, 7)
    torch.testing.assert_close(found.double(), exact, atol=1e-6, rtol=0)


def test_the_block_size_does_not_change_return_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ReturnProbabilities(5)(crooked())
    monkeypatch.setattr(walk, "BLOCK", 4)
    seen: list[tuple[str, int, int | None]] = []
    blocks = ReturnProbabilities(5, progress=lambda *report: seen.append(report))(crooked())
    torch.testing.assert_close(blocks, whole)
    assert seen == [("ReturnProbabilities", 4, 6), ("ReturnProbabilities", 6, 6)]


def test_nodes_exchanged_by_a_symmetry_have_the_same_return_probabilities() -> None:
    u = ReturnProbabilities(6)(kite())
    assert torch.equal(u[0], u[1])
    assert not torch.allclose(u[0], u[2])


def test_return_probabilities_without_steps_are_refused() -> None:
    with pytest.raises(ValueError, match="ReturnProbabilities needs `steps` at least 1; got 0"):
        ReturnProbabilities(0)


def test_return_probabilities_of_too_many_steps_are_refused() -> None:
    with pytest.raises(ValueError, match="ReturnProbabilities takes at most 2000 steps, one a channel; got 1000000000"):
        ReturnProbabilities(10**9)
