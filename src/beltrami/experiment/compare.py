"""A yardstick from outside: label spreading on the same split."""

from beltrami.data import Dataset, Split


def label_spreading(dataset: Dataset, split: Split, *, neighbours: int = 7) -> float:
    """Test accuracy, in per cent, of scikit-learn's LabelSpreading with a nearest-neighbour kernel over the features.

    It sees the features of all nodes and the labels of the training nodes; the graph it makes is its own.
    """
    from sklearn.semi_supervised import LabelSpreading

    y = dataset.y.cpu().numpy().copy()
    hidden = ~split.train.cpu().numpy()
    test = split.test.cpu().numpy()
    truth = y[test]
    y[hidden] = -1
    guess = LabelSpreading(kernel="knn", n_neighbors=neighbours, max_iter=100).fit(dataset.x.cpu().numpy(), y)
    return float(100 * (guess.transduction_[test] == truth).mean())
