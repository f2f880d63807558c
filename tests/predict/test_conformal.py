"""Conformal sets cover as often as promised, and their thresholds, scores and intervals follow their definitions."""

import json
import math
from itertools import combinations

import numpy
import pytest
import torch
from scipy import stats
from torch import Tensor

from beltrami.graph import Edges
from beltrami.predict.conformal import (
    Conformal,
    ScoreKind,
    adaptive_scores,
    coverage_interval,
    empirical_coverage_interval,
    quantile_rank,
    smooth_scores,
    threshold_scores,
)


def sample(nodes: int, classes: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return probabilities, and classes drawn from others: the model is not calibrated."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(nodes, classes, generator=generator, dtype=torch.float64)
    return (3 * logits).softmax(1), torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]


def first(n: int, nodes: int) -> Tensor:
    return torch.arange(nodes) < n


def ring(nodes: int, *, weight: Tensor | None = None) -> Edges:
    i = torch.arange(nodes)
    there, back = torch.stack((i, (i + 1) % nodes)), torch.stack(((i + 1) % nodes, i))
    return Edges.build(torch.cat((there, back), 1), num_nodes=nodes, weight=weight)


@pytest.mark.parametrize(("n", "coverage"), [(9, 0.9), (19, 0.9), (20, 0.9), (99, 0.07), (57, 0.83), (500, 0.95)])
def test_threshold_is_the_higher_quantile_of_numpy(n: int, coverage: float) -> None:
    scores = torch.rand(n, dtype=torch.float64, generator=torch.Generator().manual_seed(n)).sort().values
    k = quantile_rank(n, coverage)
    assert k - 1 < round((n + 1) * coverage, 9) <= k
    share = (k - 1) / (n - 1)  # the place of the k-th smallest in numpy's scale
    expected = numpy.quantile(scores.numpy(), share, method="higher")
    assert Conformal("threshold", scores).threshold(coverage) == pytest.approx(expected, abs=0)


def test_rank_is_exact_in_decimals() -> None:
    assert math.ceil(100 * 0.07) == 8  # in floating point
    assert quantile_rank(99, 0.07) == 7


@pytest.mark.slow
def test_crepes_gives_the_same_sets_and_intervals() -> None:
    crepes = pytest.importorskip("crepes")
    p, y = sample(90, 4)
    for coverage in (0.8, 0.9, 0.95):  # 51 times each is no integer; there crepes keeps one score more
        ours = Conformal.fit(p, y, calibration=first(50, 90), kind="threshold")
        theirs = crepes.ConformalClassifier().fit(ours.scores.numpy())
        inside = theirs.predict_set((1 - p).numpy(), confidence=coverage, smoothing=False).astype(bool)
        inside[~inside.any(1), p.numpy().argmax(1)[~inside.any(1)]] = True
        assert (ours.sets(p, coverage=coverage).numpy() == inside).all()
        numbers, truth = p[:, 0], p[:, 1]
        interval = Conformal.fit(numbers, truth, calibration=first(50, 90), kind="residual").interval
        regressor = crepes.ConformalRegressor().fit((truth - numbers)[:50].numpy())
        expected = regressor.predict_int(numbers.numpy(), confidence=coverage)
        assert torch.stack(interval(numbers, coverage=coverage), 1).numpy() == pytest.approx(expected)


@pytest.mark.parametrize(("n", "coverage"), [(4, 0.5), (4, 0.8), (5, 0.7)])
def test_intervals_over_all_calibration_sets_cover_the_exact_share(n: int, coverage: float) -> None:
    truth = torch.tensor([0.1, -0.7, 1.3, 2.2, -3.1, 0.4, 5.0])
    predictions, covered = torch.zeros(7), []
    for chosen in combinations(range(7), n):
        calibration = torch.zeros(7, dtype=torch.bool)
        calibration[list(chosen)] = True
        fitted = Conformal.fit(predictions, truth, calibration=calibration, kind="residual")
        low, high = fitted.interval(predictions, coverage=coverage)
        covered.append(((low <= truth) & (truth <= high))[~calibration].double().mean())
    assert float(torch.stack(covered).mean()) == pytest.approx(quantile_rank(n, coverage) / (n + 1))


@pytest.mark.parametrize("kind", ["threshold", "adaptive"])
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_sets_over_all_calibration_sets_cover_the_exact_share(kind: ScoreKind, smoothing: float) -> None:
    p, _ = sample(7, 3)
    y = p.argsort(1)[:, 1]  # the least likely classes would have equal adaptive scores, 1
    edges, covered, n = ring(7), [], 4
    for chosen in combinations(range(7), n):
        calibration = torch.zeros(7, dtype=torch.bool)
        calibration[list(chosen)] = True
        fitted = Conformal.fit(p, y, calibration=calibration, kind=kind, smoothing=smoothing, edges=edges)
        filled, sets = (fitted.sets(p, coverage=0.6, edges=edges, fill_empty=each) for each in (True, False))
        covered.append(sets[torch.arange(7), y][~calibration].double().mean())
        assert bool((sets <= filled).all())
        assert bool(filled.any(1).all())
    assert float(torch.stack(covered).mean()) == pytest.approx(quantile_rank(n, 0.6) / (n + 1))


def test_equal_scores_only_raise_the_coverage() -> None:
    p, _ = sample(30, 3)
    y = p.argmin(1)
    sets = Conformal.fit(p, y, calibration=first(20, 30), kind="adaptive").sets(p, coverage=0.5)
    assert float(sets[torch.arange(30), y].double().mean()) > 0.5


def test_simulated_coverage_is_the_promised_one() -> None:
    draws, n, coverage = 1500, 20, 0.9
    generator, hits = torch.Generator().manual_seed(5), 0
    for _ in range(draws):
        truth = torch.randn(n + 1, generator=generator)
        fitted = Conformal.fit(torch.zeros(n + 1), truth, calibration=first(n, n + 1), kind="residual")
        hits += bool(truth[n].abs().double() <= fitted.threshold(coverage))
    low, high = stats.binom.interval(1 - 1e-6, draws, quantile_rank(n, coverage) / (n + 1))
    assert low <= hits <= high


def test_true_coverage_of_twenty_labels_is_beta_distributed() -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(4000, 20, generator=generator, dtype=torch.float64).sort(1).values
    true_coverage = scores[:, quantile_rank(20, 0.9) - 1]  # of uniform scores, the share below the threshold
    low, high = coverage_interval(20, 0.9)
    inside = int(((low <= true_coverage) & (true_coverage <= high)).sum())
    least, most = stats.binom.interval(1 - 1e-6, 4000, 0.95)
    assert least <= inside <= most
    assert low < 0.8 < 0.9 < high


def test_coverage_interval_shrinks_with_more_labels_and_a_lower_level() -> None:
    widths = [high - low for low, high in (coverage_interval(n, 0.9) for n in (20, 200, 2000))]
    assert widths == sorted(widths, reverse=True)
    wide, narrow = coverage_interval(20, 0.9, level=0.99), coverage_interval(20, 0.9, level=0.5)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


@pytest.mark.parametrize(("n", "m"), [(20, 1), (20, 37), (140, 1000)])
def test_empirical_interval_is_that_of_the_beta_binomial_distribution(n: int, m: int) -> None:
    k = quantile_rank(n, 0.9)
    expected = numpy.array(stats.betabinom.interval(0.95, m, k, n + 1 - k)) / m
    assert empirical_coverage_interval(n, m, 0.9) == pytest.approx(expected)


def test_empirical_interval_of_many_test_nodes_tends_to_the_true_one() -> None:
    expected = coverage_interval(50, 0.9)
    assert empirical_coverage_interval(50, 200_000, 0.9) == pytest.approx(expected, abs=1e-3)


def test_adaptive_score_is_the_total_of_all_classes_at_least_as_likely() -> None:
    p, _ = sample(20, 5)
    expected = [[float(row[row >= row[c]].sum()) for c in range(5)] for row in p]
    assert adaptive_scores(p).numpy() == pytest.approx(numpy.array(expected))
    ties = adaptive_scores(torch.tensor([[0.25, 0.5, 0.25]]))
    assert ties.tolist() == [[0.75, 0.5, 1.0]]


def test_smoothed_scores_follow_the_double_loop() -> None:
    scores = torch.rand(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    edge_index = torch.tensor([[1, 2, 0, 0, 3], [0, 0, 1, 2, 2]])  # node 3 only sends, node 4 has no edges
    weight = torch.tensor([1.0, 3.0, 1.0, 3.0, 0.5], dtype=torch.float64)
    expected = scores.clone()
    for i in range(5):
        entering = [e for e in range(5) if edge_index[1, e] == i]
        if entering:
            total = sum(float(weight[e]) for e in entering)
            mean = torch.stack([weight[e] * scores[edge_index[0, e]] for e in entering]).sum(0) / total
            expected[i] = 0.7 * scores[i] + 0.3 * mean
    edges = Edges.build(edge_index, num_nodes=5, weight=weight)
    assert torch.allclose(smooth_scores(scores, edges, smoothing=0.3), expected, atol=1e-12)
    assert torch.equal(smooth_scores(scores, edges, smoothing=0.0), scores)


def test_smoothing_by_a_ring_of_equal_nodes_changes_nothing() -> None:
    p = torch.tensor([[0.7, 0.2, 0.1]]).repeat(6, 1)
    assert torch.allclose(smooth_scores(threshold_scores(p), ring(6), smoothing=0.5), 1 - p)


def test_an_empty_set_is_given_the_most_likely_class() -> None:
    fitted = Conformal("threshold", torch.full((9,), 0.2, dtype=torch.float64))
    p = torch.tensor([[0.9, 0.1], [0.4, 0.6]])
    assert fitted.sets(p, coverage=0.5).tolist() == [[True, False], [False, True]]
    assert fitted.sets(p, coverage=0.5, fill_empty=False).tolist() == [[True, False], [False, False]]


def test_sets_grow_with_the_coverage_without_another_fit() -> None:
    p, y = sample(200, 4)
    fitted = Conformal.fit(p, y, calibration=first(100, 200), kind="threshold")
    small, large = (fitted.sets(p, coverage=c) for c in (0.5, 0.95))
    assert bool((small <= large).all())
    assert int(small.sum()) < int(large.sum())


def test_set_of_labels_holds_all_labels_of_a_node_as_often_as_promised() -> None:
    generator = torch.Generator().manual_seed(2)
    p = torch.rand(2000, 4, generator=generator, dtype=torch.float64)
    y = torch.bernoulli(p, generator=generator)
    y[:5] = 0
    fitted = Conformal.fit(p, y, calibration=first(200, 2000), kind="labels")
    held = (fitted.sets(p, coverage=0.8) | (y == 0)).all(1)
    expected = torch.stack([(1 - p[i])[y[i] > 0].max() if bool(y[i].any()) else p.new_zeros(()) for i in range(200)])
    assert torch.equal(fitted.scores, expected.sort().values)
    low, high = empirical_coverage_interval(200, 1800, 0.8, level=1 - 1e-6)
    assert low <= float(held[200:].double().mean()) <= high


def test_set_of_labels_may_be_empty() -> None:
    fitted = Conformal("labels", torch.zeros(9, dtype=torch.float64))
    assert not bool(fitted.sets(torch.tensor([[0.9, 0.1]]), coverage=0.5).any())


def test_targets_of_other_nodes_are_not_read() -> None:
    p, y = sample(40, 3)
    hidden = torch.where(first(20, 40), y, -1)
    given, without = (Conformal.fit(p, each, calibration=first(20, 40), kind="threshold") for each in (y, hidden))
    assert torch.equal(given.scores, without.scores)


def test_scores_survive_json() -> None:
    p, y = sample(60, 3)
    fitted = Conformal.fit(p.float(), y, calibration=first(30, 60), kind="adaptive", smoothing=0.5, edges=ring(60))
    text = json.dumps({"kind": fitted.kind, "scores": fitted.scores.tolist(), "smoothing": fitted.smoothing})
    read = json.loads(text)
    again = Conformal(read["kind"], torch.tensor(read["scores"], dtype=torch.float64), read["smoothing"])
    first_sets, second_sets = (each.sets(p, coverage=0.9, edges=ring(60)) for each in (fitted, again))
    assert torch.equal(first_sets, second_sets)


def test_guarantee_names_the_labels_and_the_interval() -> None:
    p, y = sample(60, 3)
    fitted = Conformal.fit(p, y, calibration=first(20, 60), kind="threshold")
    guarantee = fitted.guarantee(0.9)
    assert (guarantee.coverage, guarantee.calibration_labels, guarantee.level) == (0.9, 20, 0.95)
    assert guarantee.true_coverage == coverage_interval(20, 0.9)
    assert guarantee.in_words() == (
        "A set or interval at coverage 0.9 from 20 calibration labels: the true coverage lies between "
        f"{guarantee.true_coverage[0]:.1%} and {guarantee.true_coverage[1]:.1%} with probability 0.95."
    )


def test_no_calibration_labels_are_refused_when_a_coverage_is_asked() -> None:
    p, y = sample(5, 3)
    fitted = Conformal.fit(p, y, calibration=first(0, 5), kind="threshold")
    with pytest.raises(ValueError, match="at least 9 calibration labels; there are 0"):
        fitted.sets(p, coverage=0.9)


@pytest.mark.parametrize(
    ("n", "coverage", "needed", "highest"), [(8, 0.9, 9, "0.8888"), (12, 0.95, 19, "0.923"), (0, 0.5, 1, "0")]
)
def test_too_few_labels_are_refused_with_the_number_needed(n: int, coverage: float, needed: int, highest: str) -> None:
    with pytest.raises(ValueError, match=rf"at least {needed} .* there are {n}, which allow at most {highest}:"):
        quantile_rank(n, coverage)
    assert quantile_rank(needed, coverage) == needed
    if n:
        assert quantile_rank(n, float(highest)) == n


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.1, float("nan")])
def test_a_coverage_outside_zero_and_one_is_refused(coverage: float) -> None:
    with pytest.raises(ValueError, match="coverage"):
        quantile_rank(100, coverage)


def test_wrong_arguments_are_refused() -> None:
    p, y = sample(10, 3)
    scores = torch.zeros(9, dtype=torch.float64)
    with pytest.raises(ValueError, match="kind"):
        Conformal("margin", scores)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="float64"):
        Conformal("threshold", scores.float())
    with pytest.raises(ValueError, match="ascending"):
        Conformal("threshold", torch.tensor([1.0, 0.0], dtype=torch.float64))
    with pytest.raises(ValueError, match="smoothing"):
        Conformal("threshold", scores, smoothing=1.5)
    with pytest.raises(ValueError, match="0 for residuals"):
        Conformal("residual", scores, smoothing=0.5)
    with pytest.raises(ValueError, match="call `interval`"):
        Conformal("residual", scores).sets(p, coverage=0.5)
    with pytest.raises(ValueError, match="call `sets`"):
        Conformal("threshold", scores).interval(p[:, 0], coverage=0.5)
    with pytest.raises(ValueError, match="need `edges`"):
        Conformal("threshold", scores, smoothing=0.5).sets(p, coverage=0.5)
    with pytest.raises(ValueError, match="mask of 10 nodes"):
        Conformal.fit(p, y, calibration=torch.arange(5), kind="threshold")
    with pytest.raises(ValueError, match="do not apply"):
        Conformal.fit(p, y, calibration=first(5, 10), kind="labels")
    with pytest.raises(ValueError, match="from 0 to 2"):
        Conformal.fit(p, y - 3, calibration=first(5, 10), kind="threshold")
    with pytest.raises(ValueError, match="finite target"):
        Conformal.fit(p[:, 0], p[:, 0] / 0, calibration=first(5, 10), kind="residual")
    with pytest.raises(ValueError, match="one number per node"):
        Conformal.fit(p, y, calibration=first(5, 10), kind="residual")
    with pytest.raises(ValueError, match="one number per node"):
        Conformal.fit(p[:, 0], p[:, :1], calibration=first(5, 10), kind="residual")
    with pytest.raises(ValueError, match="shape"):
        Conformal.fit(p[:, 0], y, calibration=first(5, 10), kind="threshold")
    with pytest.raises(ValueError, match="10 rows where the graph has 4"):
        smooth_scores(p, ring(4), smoothing=0.5)
    with pytest.raises(ValueError, match="level"):
        coverage_interval(20, 0.9, level=1.0)
    with pytest.raises(ValueError, match="`m` at least 1"):
        empirical_coverage_interval(20, 0, 0.9)
