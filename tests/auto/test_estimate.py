"""Estimates of time and memory grow with the sizes, and agree with runs that were measured."""

import pytest
import torch

from beltrami.auto import estimate
from beltrami.auto.estimate import CostEstimate, estimate_cost
from beltrami.data.dataset import Split
from beltrami.data.labelled_graph import LabelledGraph
from beltrami.data.target import Targets
from beltrami.graph import Edges

GIB = 2**30


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimate for the machine on which the runs were measured."""
    monkeypatch.setattr(estimate, "free_memory", lambda device: 23 * GIB)


def sizes(nodes: int, directed: int, features: int, *, labels: int, classes: int = 5) -> tuple[LabelledGraph, Split]:
    """Return a graph of these sizes; its feature matrix holds one number, expanded."""
    j = torch.arange(directed) % nodes
    edges = Edges.build(torch.stack((j, (7 * j + 1) % nodes)), num_nodes=nodes)
    x = torch.zeros(1, 1).expand(nodes, features)
    y = torch.zeros(nodes, dtype=torch.long)
    targets = Targets("classes", tuple(map(str, range(classes))), y)
    train = torch.arange(nodes) < labels
    none = torch.zeros_like(train)
    return LabelledGraph("sizes", range(nodes), x, edges, targets), Split(train, none, none, "sizes", 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("nodes", "directed", "features", "labels", "budget", "seconds", "gib"),
    [
        (2_000, 20_000, 50, 130, 30, 32.3, 0.70),
        (20_000, 200_000, 50, 1_570, 30, 34.1, 1.15),
        (20_000, 200_000, 1_000, 800, 30, 59.2, 1.38),
        (50_000, 800_000, 103, 2_000, 20, 49.5, 2.02),
        (100_000, 1_000_000, 20, 1_600, 30, 39.7, 2.97),
        pytest.param(400_000, 4_000_000, 20, 3_230, 60, 143.7, 6.45, marks=pytest.mark.slow),
    ],
)
def test_measured_runs_are_within_a_factor_of_two(
    nodes: int, directed: int, features: int, labels: int, budget: float, seconds: float, gib: float
) -> None:
    graph, split = sizes(nodes, directed, features, labels=labels)
    found = estimate_cost(graph, [split], budget=budget)
    assert 0.5 < found.memory / (gib * GIB) < 2
    assert 0.5 < found.seconds / seconds < 2


def test_flows_that_do_not_fit_into_memory_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, split = sizes(20_000, 200_000, 50, labels=1_570)
    monkeypatch.setattr(estimate, "free_memory", lambda device: 2**28)
    small = estimate_cost(graph, [split])
    monkeypatch.setattr(estimate, "free_memory", lambda device: 2**33)
    assert small.memory < estimate_cost(graph, [split]).memory


def test_fast_takes_less_time_and_memory() -> None:
    graph, split = sizes(20_000, 200_000, 50, labels=1_570)
    fast, full = estimate_cost(graph, [split], fast=True), estimate_cost(graph, [split])
    assert fast.seconds == fast.baselines == full.baselines < full.seconds - 60
    assert fast.memory < full.memory
    assert 0.5 < fast.memory / (680 * 2**20) < 2  # measured after linear diffusion


def test_sparse_features_count_by_their_non_zeros() -> None:
    graph, _ = sizes(100, 400, 3, labels=10)

    def with_features(x: torch.Tensor) -> CostEstimate:
        return estimate_cost(LabelledGraph("sparse", graph.ids, x, graph.edges), fast=True)

    dense = torch.zeros(100, 5_000).index_fill(1, torch.tensor([0]), 1.0)
    assert with_features(dense).memory - with_features(dense.to_sparse()).memory == 16 * 500_000 - 40 * 100


def test_graph_without_labels_has_an_estimate() -> None:
    graph, _ = sizes(100, 400, 3, labels=10)
    assert estimate_cost(graph, budget=10).seconds == pytest.approx(12, abs=0.1)
