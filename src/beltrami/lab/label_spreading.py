"""Label spreading by scikit-learn, an independent baseline on the same split."""

from typing import Any

import numpy as np

from beltrami.data import Dataset, Split

KERNELS: dict[str, dict[str, Any]] = {
    "rbf": {"kernel": "rbf", "gamma": 20},
    "knn": {"kernel": "knn", "n_neighbors": 7},
}  # scikit-learn's defaults of each kernel


def spread_labels(dataset: Dataset, split: Split) -> dict[str, float]:
    """Return the test accuracy, in per cent, of scikit-learn's LabelSpreading with each of its kernels.

    It uses the features of all nodes and the labels of the training nodes, and builds its own graph.
    """
    from sklearn.semi_supervised import LabelSpreading

    x, y = dataset.x.cpu().numpy(), dataset.y.cpu().numpy()
    train, test = split.train.cpu().numpy(), split.test.cpu().numpy()
    labels = np.where(train, y, -1)
    models = {name: LabelSpreading(max_iter=100, **options).fit(x, labels) for name, options in KERNELS.items()}
    return {name: float(100 * (model.transduction_[test] == y[test]).mean()) for name, model in models.items()}
