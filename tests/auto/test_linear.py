"""Linear diffusion by scikit-learn: its minimiser, the choice by validation, units, tasks, and refusals."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from dense_diffusion import diffusion_matrix
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, Ridge
from torch import Tensor
from toy import two_cliques

from beltrami.auto import linear, regression
from beltrami.auto.linear import LinearFit, fit_linear
from beltrami.data import Split
from beltrami.graph import Edges, SparseMatrix
from beltrami.train import Classification, MultiLabel, Regression, Task, predict

TOY = two_cliques(12)
N = len(TOY.y)
EDGES = Edges.build(TOY.edge_index, num_nodes=N)
WIDE = torch.cat((TOY.x, torch.randn(N, 30, generator=torch.Generator().manual_seed(7))), 1)
CLASSES = Classification(2)
TIMES = (0.0, 1.5)


def split_of(train: Sequence[int], val: Sequence[int]) -> Split:
    masks = [torch.zeros(N, dtype=torch.bool).index_fill(0, torch.tensor(nodes), True) for nodes in (train, val)]
    return Split(masks[0], masks[1], ~(masks[0] | masks[1]), "test", 0)


SPLIT = split_of([0, 1, 2, 12, 13, 14], [3, 4, 15, 16])
MANY = split_of([0, 12], [*range(3, 9), *range(15, 21)])
FOLDS = [split_of([0, 1, 12, 13], [2, 14]), split_of([1, 2, 13, 14], [0, 12]), split_of([0, 2, 12, 14], [1, 13])]


def outputs_of(fit: LinearFit, x: Tensor | SparseMatrix, split: int = 0) -> Tensor:
    model = fit.models[split]
    return predict(model, model.prepare(x, EDGES), time=model.time)


def scaled(x: Tensor, train: Tensor, time: float) -> NDArray[np.float64]:
    """Diffused features over their root mean square distance from the mean of the training nodes."""
    features = diffusion_matrix(EDGES, time) @ x.double()
    centred = features - features[train].mean(0)
    array: NDArray[np.float64] = (centred / centred[train].square().sum(1).mean().sqrt()).numpy()
    return array


def only(
    x: Tensor, task: Task, y: Tensor, *, time: float = 1.5, strength: float = 2.0, balanced: bool = False
) -> Tensor:
    fit = fit_linear(x, EDGES, y, [SPLIT], task=task, times=(time,), strengths=(strength,), balanced=balanced)
    return outputs_of(fit, x).double()


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("x", [TOY.x, WIDE], ids=["few features", "more features than nodes"])
def test_probabilities_are_those_of_scikit_learn_on_diffused_features(x: Tensor, balanced: bool) -> None:
    y = torch.tensor([0, 1, 2] * (N // 3))
    inputs = scaled(x, SPLIT.train, 1.5)
    weights = "balanced" if balanced else None
    model = LogisticRegression(C=2.0, tol=1e-8, max_iter=2000, class_weight=weights).fit(
        inputs[SPLIT.train], y[SPLIT.train]
    )
    found = only(x, Classification(3), y, balanced=balanced).softmax(-1)
    torch.testing.assert_close(found, torch.from_numpy(model.predict_proba(inputs)), rtol=0, atol=5e-3)


def test_two_classes_have_the_probabilities_of_scikit_learn() -> None:
    inputs = scaled(TOY.x, SPLIT.train, 1.5)
    model = LogisticRegression(C=2.0, tol=1e-8).fit(inputs[SPLIT.train], TOY.y[SPLIT.train])
    found = only(TOY.x, CLASSES, TOY.y).softmax(-1)
    torch.testing.assert_close(found, torch.from_numpy(model.predict_proba(inputs)), rtol=0, atol=5e-3)


def test_each_label_has_a_logistic_regression_of_its_own() -> None:
    y = torch.stack((TOY.y, torch.arange(N) % 2, torch.ones(N, dtype=torch.long)), 1)
    inputs, found = scaled(TOY.x, SPLIT.train, 1.5), only(TOY.x, MultiLabel(3), y)
    for label in range(2):
        model = LogisticRegression(C=2.0, tol=1e-8).fit(inputs[SPLIT.train], y[SPLIT.train, label])
        expected = torch.from_numpy(model.decision_function(inputs))
        torch.testing.assert_close(found[:, label], expected, rtol=0, atol=2e-2)
    assert bool((found[:, 2] > 0).all())  # a label that all training nodes have


@pytest.mark.parametrize("targets", [1, 2])
def test_numbers_are_those_of_ridge_regression(targets: int) -> None:
    y = torch.stack((TOY.x[:, 1] + 5, 100 * TOY.x[:, 2]), 1)[:, :targets]
    inputs = scaled(TOY.x, SPLIT.train, 0.0)
    model = Ridge(alpha=0.5).fit(inputs[SPLIT.train], y[SPLIT.train].double())
    expected = torch.from_numpy(model.predict(inputs)).reshape(N, targets)
    y = y[:, 0] if targets == 1 else y
    torch.testing.assert_close(only(TOY.x, Regression(targets), y, time=0.0), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("splits", [[SPLIT], [MANY], FOLDS], ids=["one", "many validation nodes", "folds"])
def test_the_best_mean_metric_of_the_grid_is_chosen(splits: list[Split]) -> None:
    y = TOY.y.clone()
    y[[3, 15]] = y[[15, 3]]  # two labels that diffusion gets wrong
    grid = [
        fit_linear(WIDE, EDGES, y, splits, task=CLASSES, times=(time,), strengths=(strength,))
        for time in TIMES
        for strength in (0.1, 10.0)
    ]
    best = max(grid, key=lambda fit: fit.score)
    found = fit_linear(WIDE, EDGES, y, splits, task=CLASSES, times=TIMES, strengths=(0.1, 10.0))
    assert (found.time, found.strength) == (best.time, best.strength)
    assert found.validation == pytest.approx(best.validation)
    metrics = [
        float(CLASSES.metric(outputs_of(found, WIDE, k)[split.val], y[split.val])) for k, split in enumerate(splits)
    ]
    assert found.validation == pytest.approx(sum(metrics) / len(metrics))


@pytest.mark.parametrize("splits", [[MANY], FOLDS], ids=["many validation nodes", "folds"])
def test_sparse_features_give_the_same_outputs(splits: list[Split]) -> None:
    x = WIDE * (WIDE.abs() > 1)
    dense, sparse = (
        fit_linear(matrix, EDGES, TOY.y, splits, task=CLASSES, times=TIMES) for matrix in (x, SparseMatrix.of(x))
    )
    assert (dense.time, dense.strength) == (sparse.time, sparse.strength)
    torch.testing.assert_close(outputs_of(sparse, SparseMatrix.of(x)), outputs_of(dense, x), rtol=1e-3, atol=1e-3)


def test_few_times_in_a_solve_give_the_same_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fit_linear(WIDE, EDGES, TOY.y, [MANY], task=CLASSES, times=TIMES)
    monkeypatch.setattr(linear, "STORED_BYTES", 1)
    found = fit_linear(WIDE, EDGES, TOY.y, [MANY], task=CLASSES, times=TIMES)
    assert found.score.minus_loss == pytest.approx(expected.score.minus_loss, rel=1e-3)


def test_a_basis_of_the_training_nodes_does_not_change_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = only(WIDE, CLASSES, TOY.y)
    monkeypatch.setattr(regression, "LARGEST_BASIS", 0)
    torch.testing.assert_close(only(WIDE, CLASSES, TOY.y), expected, rtol=0, atol=2e-2)


@pytest.mark.parametrize("factor", [1e-3, 1e6])
def test_the_units_of_the_features_do_not_matter(factor: float) -> None:
    torch.testing.assert_close(only(factor * TOY.x, CLASSES, TOY.y), only(TOY.x, CLASSES, TOY.y), rtol=0, atol=1e-3)


def test_equal_features_give_equal_outputs() -> None:
    for columns in (3, 30):
        outputs = only(torch.ones(N, columns), CLASSES, TOY.y)
        assert bool(torch.isfinite(outputs).all())
        torch.testing.assert_close(outputs, outputs[:1].expand_as(outputs), rtol=0, atol=1e-4)


def test_targets_of_other_nodes_are_not_read() -> None:
    y = torch.where(SPLIT.train | SPLIT.val, TOY.y, -1)
    assert torch.equal(only(TOY.x, CLASSES, y), only(TOY.x, CLASSES, TOY.y))


def test_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one split"):
        fit_linear(TOY.x, EDGES, TOY.y, [], task=CLASSES)
    with pytest.raises(ValueError, match="`times` must be different, finite"):
        fit_linear(TOY.x, EDGES, TOY.y, [SPLIT], task=CLASSES, times=(1.0, 1.0))
    with pytest.raises(ValueError, match="`strengths` must be positive"):
        fit_linear(TOY.x, EDGES, TOY.y, [SPLIT], task=CLASSES, strengths=(0.0,))
    with pytest.raises(ValueError, match="a regression has none"):
        fit_linear(TOY.x, EDGES, TOY.x[:, 0], [SPLIT], task=Regression(), balanced=True)
    with pytest.raises(ValueError, match="class 2 has no training nodes"):
        fit_linear(TOY.x, EDGES, TOY.y, [SPLIT], task=Classification(3))
