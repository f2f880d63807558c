"""A yardstick from outside: label spreading on the same split."""

from typing import Any

import numpy as np

from beltrami.data import Dataset, Split

KERNELS: dict[str, dict[str, Any]] = {
    "rbf": {"kernel": "rbf", "gamma": 20},
    "knn": {"kernel": "knn", "n_neighbors": 7},
}  # scikit-learn's own defaults for either kernel


def label_spreading(dataset: Dataset, split: Split) -> dict[str, float]:
    """Test accuracy, in per cent, of scikit-learn's LabelSpreading with each of its kernels at their defaults.

    It sees the features of all nodes and the labels of the training nodes; the graph it makes is its own.
    """
    from sklearn.semi_supervised import LabelSpreading

    x, y = dataset.x.cpu().numpy(), dataset.y.cpu().numpy()
    train, test = split.train.cpu().numpy(), split.test.cpu().numpy()
    labels = np.where(train, y, -1)
    guesses = {name: LabelSpreading(max_iter=100, **options).fit(x, labels) for name, options in KERNELS.items()}
    return {name: float(100 * (guess.transduction_[test] == y[test]).mean()) for name, guess in guesses.items()}
