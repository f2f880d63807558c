"""Label spreading by scikit-learn, an independent baseline on the same splits."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from beltrami.config.spec import RunConfig
from beltrami.data import Dataset, Split
from beltrami.run import check_run, run_config


def compare_splits(
    config: RunConfig,
    first: float,
    *,
    splits: int,
    device: str = "cpu",
    report: Callable[[int], None] = lambda done: None,
) -> dict[str, list[float]]:
    """Return test accuracies, in per cent, on ``splits`` splits with consecutive seeds: those of the configuration, by
    its recipe's name, and those of LabelSpreading by kernel. ``first`` is the accuracy of the configuration on its own
    split, which is the first; ``report`` is told how many splits are done."""
    found: dict[str, list[float]] = {config.recipe: []}
    for k in range(splits):
        each = replace(config, data=replace(config.data, split_seed=config.data.split_seed + k))
        found[config.recipe].append(run_config(each, device=device)[0].test_accuracy if k else first)
        _, dataset, split, _ = check_run(each)
        for kernel, accuracy in spread_labels(dataset, split).items():
            found.setdefault(kernel, []).append(accuracy)
        report(k + 1)
    return found


def spread_labels(dataset: Dataset, split: Split) -> dict[str, float]:
    """Return the test accuracy, in per cent, of scikit-learn's LabelSpreading with each of its kernels. It uses the
    features of all nodes and the labels of the training nodes, and builds its own graph."""
    from sklearn.semi_supervised import LabelSpreading

    x, y = dataset.x.cpu().numpy(), dataset.y.cpu().numpy()
    train, test = split.train.cpu().numpy(), split.test.cpu().numpy()
    labels = np.where(train, y, -1)
    models = {kernel: LabelSpreading(kernel=kernel, max_iter=100).fit(x, labels) for kernel in ("rbf", "knn")}
    return {name: float(100 * (model.transduction_[test] == y[test]).mean()) for name, model in models.items()}
