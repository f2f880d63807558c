"""Holm's correction and ranks over datasets, against examples by hand, published tables and scipy."""

import numpy as np
import pytest
from scipy import stats

from beltrami.lab.study.significance import Ranking, holm


def test_holm_by_hand() -> None:
    found = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert found == pytest.approx({"d": 0.02, "a": 0.03, "c": 0.06, "b": 0.06})
    assert list(found) == ["a", "b", "c", "d"]
    assert holm({"a": 0.4, "b": 0.9}) == pytest.approx({"a": 0.8, "b": 0.9})
    assert holm({"a": 0.03}) == {"a": 0.03}
    assert holm({}) == {}


def test_holm_is_the_closed_procedure_of_bonferroni_tests() -> None:
    """A hypothesis is rejected if every set of hypotheses that has it is rejected by Bonferroni's test."""
    p = dict(enumerate(np.random.default_rng(0).uniform(0, 0.2, size=5)))
    sets = [[k for k in p if bits >> k & 1] for bits in range(1, 2**5)]
    closed = {k: max(min(1.0, len(each) * min(p[j] for j in each)) for each in sets if k in each) for k in p}
    assert holm(p) == pytest.approx(closed)


def test_holm_claims_something_false_at_most_as_often_as_it_says() -> None:
    draws = np.random.default_rng(1).uniform(size=(4000, 6))
    wrong = np.mean([min(holm(dict(enumerate(row))).values()) < 0.05 for row in draws.tolist()])
    assert wrong == pytest.approx(0.05, abs=3 * (0.05 * 0.95 / 4000) ** 0.5)


def test_ranks_by_hand() -> None:
    found = Ranking.of({"a": [90, 80, 70], "b": [85, 85, 60], "c": [80, 75, 65]})
    assert dict(found.average) == pytest.approx({"a": 4 / 3, "b": 2.0, "c": 8 / 3})
    assert list(found.average) == ["a", "b", "c"]
    assert found.critical_difference == pytest.approx(2.343 * (3 * 4 / (6 * 3)) ** 0.5, abs=2e-3)
    assert found.cliques == [("a", "b", "c")]


@pytest.mark.parametrize("ties", [False, True])
def test_friedmans_test_is_that_of_scipy(ties: bool) -> None:
    values = np.random.default_rng(2).normal(80, 3, size=(4, 7))
    values = values.round(-1) if ties else values
    found = Ranking.of({f"m{k}": row.tolist() for k, row in enumerate(values)})
    assert found.p_value == pytest.approx(stats.friedmanchisquare(*values).pvalue)
    ranks = stats.rankdata(-values, axis=0).mean(1)
    assert [found.average[f"m{k}"] for k in range(4)] == pytest.approx(ranks.tolist())


@pytest.mark.parametrize(("methods", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_differences_are_those_of_the_published_table(methods: int, q: float) -> None:
    """The values of q at 5% are those of Demšar (2006), Table 5 (a)."""
    found = Ranking.of({f"m{k}": [float(k), k + 1.0] for k in range(methods)})
    assert found.critical_difference == pytest.approx(q * (methods * (methods + 1) / 12) ** 0.5, rel=5e-4)


def test_methods_that_are_told_apart_are_in_no_common_clique() -> None:
    average = {"a": 1.0, "b": 2.0, "c": 3.5, "d": 4.0}
    assert Ranking(average, 30, 0.0, 1.8).cliques == [("a", "b"), ("b", "c"), ("c", "d")]
    assert Ranking(average, 30, 0.0, 0.4).cliques == []
    assert Ranking(average, 30, 0.0, 2.6).cliques == [("a", "b", "c"), ("b", "c", "d")]


def test_equal_methods_do_not_differ_and_single_ones_have_no_ranks() -> None:
    same = Ranking.of({"a": [1.0, 2.0], "b": [1.0, 2.0]})
    assert (same.p_value, set(same.average.values())) == (1.0, {1.5})
    with pytest.raises(ValueError, match=r"at least 2 methods and 2 datasets; got 1 and 3"):
        Ranking.of({"a": [1, 2, 3]})
