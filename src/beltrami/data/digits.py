"""The handwritten digits that come with scikit-learn, as a graph of similar images; no files, no network."""

import numpy as np
import torch

from beltrami.data.dataset import Dataset, undirected

LEVELS = 16


def read_digits(*, k: int = 8) -> Dataset:
    """1797 images of 8 x 8 grey levels, joined to their ``k`` nearest by Euclidean distance, in either direction.

    The grey levels are integers, so squared distances are exact, ties go to the lowest number and the graph is the
    same on every machine. Features are the grey levels scaled to [0, 1], classes are the digits.

    Args:
        k: neighbours that every image chooses; it may be chosen by more.
    """
    from sklearn.datasets import load_digits

    images, classes = load_digits(return_X_y=True)
    n = images.shape[0]
    if not 1 <= k < n:
        raise ValueError(f"`k` must be from 1 to {n - 1}, the number of other images; got {k}.")
    levels = images.astype(np.int64)
    square = (levels**2).sum(1)
    distance = square[:, None] + square[None, :] - 2 * (images @ images.T).astype(np.int64)
    np.fill_diagonal(distance, distance.max() + 1)
    order = distance * n + np.arange(n)  # unique keys: distance first, then the number
    nearest = np.argpartition(order, k - 1, axis=1)[:, :k]
    edge_index = np.stack((nearest.ravel(), np.repeat(np.arange(n), k)))
    return Dataset(
        name="digits",
        x=torch.from_numpy(images / LEVELS).float(),
        edge_index=undirected(torch.from_numpy(edge_index), num_nodes=n),
        y=torch.from_numpy(classes).long(),
    )
