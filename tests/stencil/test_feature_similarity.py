"""Likeness and what stands beside the graph, against loops."""

import math
from functools import partial

import pytest
import torch
from torch import Tensor

from beltrami.graph import Edges
from beltrami.stencil import KNN, AddEdges, Chain, FeatureSimilarity, Symmetric, by_rarity

N = 12
close = partial(torch.testing.assert_close, atol=1e-12, rtol=1e-12)


def features() -> Tensor:
    x = torch.rand(N, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return x * (x > 0.4)


def ring(weight: Tensor | None = None) -> Edges:
    i = torch.arange(N)
    edge_index = torch.cat((torch.stack((i, (i + 1) % N)), torch.stack(((i + 1) % N, i))), dim=1)
    return Edges.build(edge_index, num_nodes=N, weight=weight)


def weights(edges: Edges) -> dict[tuple[int, int], float]:
    assert edges.weight is not None
    return {(int(j), int(i)): float(w) for j, i, w in zip(edges.j, edges.i, edges.weight, strict=True)}


def test_weights_are_those_of_the_formula() -> None:
    x, edges, kappa = features(), ring(), 0.7
    cosine = {
        (int(j), int(i)): float(x[i] @ x[j] / math.sqrt(float(x[i] @ x[i]) * float(x[j] @ x[j])))
        for j, i in edges.edge_index.T
    }
    mean = sum(cosine.values()) / len(cosine)
    deviation = math.sqrt(sum((c - mean) ** 2 for c in cosine.values()) / len(cosine))
    factor = {pair: math.exp(kappa * max(-2.5, min(2.5, (c - mean) / deviation))) for pair, c in cosine.items()}
    total = sum(factor.values()) / len(factor)
    found = weights(FeatureSimilarity(kappa)(x, edges))
    assert found.keys() == factor.keys()
    assert all(found[pair] == pytest.approx(factor[pair] / total, rel=1e-10) for pair in factor)


def test_likeness_is_mutual_and_multiplies_the_measure() -> None:
    measure = 1.0 + torch.arange(2 * N, dtype=torch.float64)
    plain, weighed = (
        weights(FeatureSimilarity(0.5)(features(), ring())),
        weights(FeatureSimilarity(0.5)(features(), ring(measure))),
    )
    own = weights(ring(measure))
    assert all(plain[j, i] == pytest.approx(plain[i, j]) for j, i in plain)
    assert all(weighed[pair] == pytest.approx(plain[pair] * own[pair]) for pair in plain)


def test_more_alike_counts_more_and_zero_changes_nothing() -> None:
    x, edges = features(), ring()
    alike = torch.nn.functional.cosine_similarity(x[edges.i], x[edges.j])
    weight = FeatureSimilarity(0.5)(x, edges).weight
    assert weight is not None
    assert bool((weight[alike.argsort()].diff() >= -1e-12).all())
    flat = FeatureSimilarity(0.0)(x, edges).weight
    assert flat is not None
    close(flat, torch.ones(2 * N, dtype=torch.float64))


def test_equal_features_and_no_edges_are_no_trouble() -> None:
    same = FeatureSimilarity(2.0)(torch.ones(N, 3), ring()).weight
    assert same is not None
    close(same, torch.ones(2 * N))
    bare = Edges.build(torch.empty(2, 0, dtype=torch.int64), num_nodes=N)
    assert FeatureSimilarity()(torch.ones(N, 3), bare).num_edges == 0


def test_beside_adds_what_is_missing_once() -> None:
    x, edges = features(), ring()
    other = Chain(KNN(3), Symmetric())
    expected = dict.fromkeys(((int(j), int(i)) for j, i in edges.edge_index.T), 1.0)
    for j, i in other(x, edges).edge_index.T.tolist():
        expected.setdefault((j, i), 0.25)
    assert len(expected) > edges.num_edges
    both = AddEdges(other, weight=0.25)(x, edges)
    assert both.num_edges == len(expected)
    assert weights(both) == expected


def test_rarity_is_that_of_the_double_loop() -> None:
    x = features()
    found = by_rarity(x)
    for i in range(N):
        row = []
        for k in range(x.shape[1]):
            holders = sum(float(x[node, k]) != 0 for node in range(N))
            row.append(float(x[i, k]) * (1 + math.log((1 + N) / (1 + holders))))
        length = math.sqrt(sum(value**2 for value in row))
        close(found[i], torch.tensor([value / length for value in row], dtype=torch.float64))


@pytest.mark.parametrize(
    "make", [lambda: FeatureSimilarity(float("inf")), lambda: AddEdges(KNN(2), weight=0.0)], ids=["sharpness", "weight"]
)
def test_what_fits_nothing_is_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=r"Likeness needs a finite|Beside needs a positive"):
        make()
