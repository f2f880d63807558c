"""The three baselines: their records, and test nodes that may be absent."""

import math
from dataclasses import replace

import pytest
import torch
from toy import two_cliques

from beltrami.auto import run_baselines, run_linear
from beltrami.graph import Edges
from beltrami.train import Classification, Regression, predict, read_test

TOY = two_cliques()
EDGES = Edges.build(TOY.edge_index, num_nodes=len(TOY.y))
NO_TEST = replace(TOY.split, test=torch.zeros_like(TOY.split.test))


def test_each_baseline_has_a_record() -> None:
    results, _ = run_baselines(TOY.x, EDGES, TOY.y, [TOY.split, TOY.split], task=Classification(2), times=(0.0, 2.0))
    assert [result.name for result in results] == ["logistic regression", "label propagation", "linear diffusion"]
    assert [set(result.settings) for result in results] == [{"strength"}, {"alpha"}, {"strength", "time"}]
    for result in results:
        assert 0 <= result.validation <= 1
        assert result.test is not None
        assert result.seconds > 0
    assert results[1].test == 1.0  # two cliques


def test_the_test_metric_is_that_of_the_fitted_models() -> None:
    result, fit = run_linear(TOY.x, EDGES, TOY.y, [TOY.split], task=Classification(2))
    (model,) = fit.models
    outputs = predict(model, model.prepare(TOY.x, EDGES), time=model.time)
    assert result.test == read_test(outputs, TOY.y, TOY.split)


def test_without_test_nodes_there_is_no_test_metric() -> None:
    y = torch.where(TOY.split.test, -1, TOY.y)
    results, _ = run_baselines(TOY.x, EDGES, y, [NO_TEST], task=Classification(2), times=(0.0, 2.0))
    assert [result.test for result in results] == [None] * 3


def test_numbers_have_a_ridge_regression() -> None:
    y = torch.where(TOY.split.test, math.nan, TOY.x[:, 0])
    results, _ = run_baselines(TOY.x[:, :2], EDGES, y, [NO_TEST], task=Regression(), times=(0.0, 2.0))
    assert [result.name for result in results] == ["ridge regression", "label propagation", "linear diffusion"]
    assert results[0].validation == pytest.approx(0, abs=0.1)
    assert results[0].validation > results[1].validation
