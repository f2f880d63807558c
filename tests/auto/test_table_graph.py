"""The graph of a table is the one on which a ridge regression validates best."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from beltrami.auto.portfolio import MEMBERS
from beltrami.auto.table_graph import TABLE_TIMES, choose_graph, ridge_errors
from beltrami.data.graph_table import GraphTable
from beltrami.data.labelled_split import split_labels
from beltrami.data.target import Targets


def test_errors_are_those_of_ridge_regressions_one_by_one() -> None:
    random = np.random.RandomState(0)
    x, y, others, truth = (random.randn(rows, columns) for rows in (12, 7) for columns in (5, 3))
    found = ridge_errors(x, y, others, truth, (0.1, 10.0))
    expected = [np.square(Ridge(alpha=1 / c).fit(x, y).predict(others) - truth).mean() for c in (0.1, 10.0)]
    assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("own_units", [False, True])
def test_columns_share_a_unit_if_that_validates_better(own_units: bool) -> None:
    """One column tells the classes apart; forty columns of noise are a hundredth of it, or a hundred times it."""
    random = np.random.RandomState(0)
    y = np.repeat([0, 1], 40)
    x = np.concatenate((3.0 * (2 * y - 1)[:, None] + random.randn(80, 1), 0.01 * random.randn(80, 40)), 1)
    if own_units:
        x = np.concatenate((random.randn(80, 3) + 3 * (2 * y - 1)[:, None], 1000 * random.randn(80, 1)), 1)
    given = torch.from_numpy(np.where(random.rand(80) < 0.3, y, -1))
    table = GraphTable("rows", [str(k) for k in range(80)], x=torch.from_numpy(x).float())
    targets = Targets("classes", ("a", "b"), given)
    chosen = choose_graph(table, targets, split_labels(given, seed=0))
    scales = chosen.preprocessing.numbers.scale
    assert (len(set(scales)) > 1) == own_units
    assert chosen.graph.neighbours in (5, 10)
    assert 0.0 in chosen.times
    assert set(chosen.times) <= set(TABLE_TIMES)


def test_members_normalise_at_receivers_on_the_graph_of_a_table() -> None:
    for member in MEMBERS.values():
        config = member.config("rows", exclusive=True, seed=0, by_features=True)
        assert config.diffusivity.kind != "none"
        assert config.diffusivity.over == "rows"
