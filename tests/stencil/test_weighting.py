"""Stencils that reweight or select edges, against loops."""

import math
from functools import partial

import pytest
import torch
from checks import kite
from torch import Tensor

from beltrami.diffusivity import Gaussian
from beltrami.graph import Edges
from beltrami.joint import Joint
from beltrami.stencil import KNN, Chain, FeatureSimilarity, KeepStrongest, Loops, tf_idf
from beltrami.stencil.weighting import edge_cosine, unit_rows

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


def test_feature_similarity_is_its_equation() -> None:
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


def test_scores_are_clipped_at_two_and_a_half_standard_deviations() -> None:
    """Of n edges, one with cosine 1 and the others 0: the score of the one is sqrt(n - 1), far beyond the limit."""
    n = 20
    x = torch.eye(2 * n, dtype=torch.float64)
    x[1] = x[0]
    edges = Edges.build(torch.stack((torch.arange(0, 2 * n, 2), torch.arange(1, 2 * n, 2))), num_nodes=2 * n)
    weight = FeatureSimilarity(1.0)(x, edges).weight
    assert weight is not None
    assert math.sqrt(n - 1) > 2.5 > 1 / math.sqrt(n - 1)
    ratio = math.exp(2.5 + 1 / math.sqrt(n - 1))  # the scores are 2.5 and -1 / sqrt(n - 1)
    assert float(weight[0] / weight[1]) == pytest.approx(ratio, rel=1e-12)
    opposite = FeatureSimilarity(1.0)(torch.cat((x[:1], -x[1:2], x[2:])), edges).weight
    assert opposite is not None
    assert float(opposite[1] / opposite[0]) == pytest.approx(ratio, rel=1e-12)


def test_feature_similarity_is_symmetric_and_multiplies_the_edge_weights() -> None:
    measure = 1.0 + torch.arange(2 * N, dtype=torch.float64)
    plain, weighted = (
        weights(FeatureSimilarity(0.5)(features(), ring())),
        weights(FeatureSimilarity(0.5)(features(), ring(measure))),
    )
    own = weights(ring(measure))
    assert all(plain[j, i] == pytest.approx(plain[i, j]) for j, i in plain)
    assert all(weighted[pair] == pytest.approx(plain[pair] * own[pair]) for pair in plain)


def test_weights_increase_with_similarity_and_a_sharpness_of_zero_changes_nothing() -> None:
    x, edges = features(), ring()
    similarity = torch.nn.functional.cosine_similarity(x[edges.i], x[edges.j])
    weight = FeatureSimilarity(0.5)(x, edges).weight
    assert weight is not None
    assert bool((weight[similarity.argsort()].diff() >= -1e-12).all())
    flat = FeatureSimilarity(0.0)(x, edges).weight
    assert flat is not None
    close(flat, torch.ones(2 * N, dtype=torch.float64))


def test_equal_features_give_equal_weights_and_no_edges_stay_none() -> None:
    same = FeatureSimilarity(2.0)(torch.ones(N, 3), ring()).weight
    assert same is not None
    close(same, torch.ones(2 * N))
    bare = Edges.build(torch.empty(2, 0, dtype=torch.int64), num_nodes=N)
    assert FeatureSimilarity()(torch.ones(N, 3), bare).num_edges == 0


def test_tf_idf_is_the_double_loop() -> None:
    x = features()
    found = tf_idf(x)
    for i in range(N):
        row = []
        for k in range(x.shape[1]):
            documents = sum(float(x[node, k]) != 0 for node in range(N))
            row.append(float(x[i, k]) * (1 + math.log((1 + N) / (1 + documents))))
        length = math.sqrt(sum(value**2 for value in row))
        close(found[i], torch.tensor([value / length for value in row], dtype=torch.float64))


def test_the_strongest_edges_have_the_largest_diffusivity_and_loops_stay() -> None:
    z, diffusivity = features()[:, :5], Gaussian(Joint(2, 3), length=0.2).double()
    edges = Chain(KNN(6), Loops())(z, ring())
    kept = KeepStrongest(0.5, diffusivity)(z, edges)
    a = dict(zip(map(tuple, edges.edge_index.T.tolist()), diffusivity(z, edges).tolist(), strict=True))
    others = {pair: value for pair, value in a.items() if pair[0] != pair[1]}
    strongest = sorted(others, key=lambda pair: -others[pair])[: len(others) // 2]
    assert set(map(tuple, kept.edge_index.T.tolist())) == set(strongest) | {(i, i) for i in range(N)}


def test_refusals() -> None:
    with pytest.raises(ValueError, match="FeatureSimilarity needs a finite `sharpness`; got inf"):
        FeatureSimilarity(float("inf"))
    with pytest.raises(ValueError, match=r"KeepStrongest needs `share` above 0 and at most 1; got 0.0"):
        KeepStrongest(0.0, Gaussian(Joint(2, 3)))


@pytest.mark.parametrize("scale", [1e19, 1e38, 1e-22, 1e-38])
def test_similarity_of_features_does_not_depend_on_their_scale(scale: float) -> None:
    x, edges = torch.randn(4, 6, generator=torch.Generator().manual_seed(1)), kite()
    rows = torch.tensor([[scale], [1.0], [scale], [scale]])
    torch.testing.assert_close(edge_cosine(rows * x, edges), edge_cosine(x, edges), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(tf_idf(rows * x), tf_idf(x), rtol=1e-6, atol=1e-6)


def test_rows_of_ordinary_size_keep_their_bits() -> None:
    x = torch.randn(5, 7, generator=torch.Generator().manual_seed(1))
    x[2] = 0
    assert torch.equal(unit_rows(x), torch.nn.functional.normalize(x, dim=1))
    assert unit_rows(x[:0]).shape == (0, 7)
