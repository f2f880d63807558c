"""Label spreading by scikit-learn, an independent baseline on the same split."""

import numpy as np

from beltrami.data import Dataset, Split


def spread_labels(dataset: Dataset, split: Split) -> dict[str, float]:
    """Return the test accuracy, in per cent, of scikit-learn's LabelSpreading with each of its kernels. It uses the
    features of all nodes and the labels of the training nodes, and builds its own graph."""
    from sklearn.semi_supervised import LabelSpreading

    x, y = dataset.x.cpu().numpy(), dataset.y.cpu().numpy()
    train, test = split.train.cpu().numpy(), split.test.cpu().numpy()
    labels = np.where(train, y, -1)
    models = {kernel: LabelSpreading(kernel=kernel, max_iter=100).fit(x, labels) for kernel in ("rbf", "knn")}
    return {name: float(100 * (model.transduction_[test] == y[test]).mean()) for name, model in models.items()}
