"""Logistic and ridge regression by scikit-learn on scaled features, for several strengths of regularisation."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beltrami.train import MultiLabel, Regression, Task

MOST_ITERATIONS = 300  # of the logistic regression
TOLERANCE = 1e-5  # of its gradient; at 1e-4 a fit that starts from another ends too early
LARGEST_BASIS = 2000  # training nodes up to which features are written in a basis of their span
NEGLIGIBLE = 1e-10  # of the largest eigenvalue

Array = NDArray[np.float64]
Weights = tuple[Tensor, Tensor]  # W (d, outputs) and b (outputs,)


@dataclass(frozen=True, eq=False)
class Coordinates:
    r"""Coordinates of features f (d,) for the fit: :math:`V^\top (f - m) / s`.

    m is the mean over the training nodes and s the root mean square of :math:`\|f - m\|`. V is the identity, or, if
    training nodes are fewer than features, an orthonormal basis of their span: the minimiser is within this span, so
    that nothing is lost.
    """

    mean: Tensor
    scale: float
    basis: Tensor | None

    @staticmethod
    def of(features: Tensor) -> "Coordinates":
        """Return the coordinates for the features of training nodes, (k, d)."""
        features = features.double()
        mean = features.mean(0)
        centred = features - mean
        scale = float(centred.square().sum(1).mean().sqrt()) or 1.0
        if not len(features) < min(features.shape[1], LARGEST_BASIS):
            return Coordinates(mean, scale, None)
        values, vectors = torch.linalg.eigh(centred @ centred.T)
        kept = values > NEGLIGIBLE * values[-1]
        kept[-1] = True  # at least one column, also where all features are equal
        basis = centred.T @ (vectors[:, kept] / values[kept].clamp(min=1e-300).sqrt())
        return Coordinates(mean, scale, basis)

    def __call__(self, features: Tensor) -> Array:
        """Return the coordinates of features, (k, d) -> (k, r)."""
        centred = (features.double() - self.mean) / self.scale
        array: Array = (centred if self.basis is None else centred @ self.basis).cpu().numpy()
        return array

    def restore(self, weight: Array, bias: Array) -> Weights:
        """Return W (d, outputs) and b (outputs,) for features from those for coordinates, (r, outputs)."""
        w = torch.from_numpy(np.ascontiguousarray(weight)).to(self.mean) / self.scale
        w = w if self.basis is None else self.basis @ w
        return w, torch.from_numpy(np.ascontiguousarray(bias)).to(self.mean) - self.mean @ w


def fit_weights(
    inputs: Array, targets: NDArray[Any], strengths: Sequence[float], task: Task, balanced: bool
) -> list[tuple[Array, Array]]:
    """Return, for each strength, weights (r, outputs) and biases (outputs,) for the coordinates (k, r) and targets of
    training nodes."""
    if isinstance(task, Regression):
        from sklearn.linear_model import Ridge

        targets = targets.reshape(len(targets), -1).astype(np.float64)
        ridges = [Ridge(alpha=1 / strength).fit(inputs, targets) for strength in strengths]
        return [(each.coef_.reshape(task.num_outputs, -1).T, np.atleast_1d(each.intercept_)) for each in ridges]
    if isinstance(task, MultiLabel):
        labels = [_logistic(inputs, column > 0, strengths, balanced) for column in targets.T]
        return [_side_by_side(each) for each in zip(*labels, strict=True)]
    found = _logistic(inputs, targets, strengths, balanced)
    if task.num_outputs > 2:
        return found
    return [_side_by_side([(-w / 2, -b / 2), (w / 2, b / 2)]) for w, b in found]  # scikit-learn has their difference


def _side_by_side(parts: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    return np.concatenate([w for w, _ in parts], 1), np.concatenate([b for _, b in parts])


def _logistic(
    inputs: Array, targets: NDArray[Any], strengths: Sequence[float], balanced: bool
) -> list[tuple[Array, Array]]:
    """Return, for each strength, the weights (r, outputs) and biases of a logistic regression; one output for two
    classes. Each fit starts from the one before."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if len(np.unique(targets)) == 1:  # a label that all training nodes have
        return [(np.zeros((inputs.shape[1], 1)), np.log([len(targets) + 1.0]))] * len(strengths)
    weights = "balanced" if balanced else None
    model = LogisticRegression(tol=TOLERANCE, max_iter=MOST_ITERATIONS, class_weight=weights, warm_start=True)
    found = []
    with warnings.catch_warnings():  # an early stop is a little more regularisation
        warnings.simplefilter("ignore", ConvergenceWarning)
        for strength in strengths:
            model.set_params(C=strength).fit(inputs, targets)
            found.append((model.coef_.T.copy(), model.intercept_.copy()))
    return found
