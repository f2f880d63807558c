"""Protocols: the named rules by which the literature divides nodes into training, validation and test sets."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import torch
from numpy.typing import NDArray

from beltrami.data.dataset import Dataset
from beltrami.data.split import Split, mask
from beltrami.errors import UnknownName

TRAIN_PER_CLASS = 20
VAL_PER_CLASS = 30
DEVELOPMENT = 1500
LARGE_DEVELOPMENT = {"coauthor-cs": 5000}
DRAWS = 100

Nodes = NDArray[np.int64]
Protocol = Callable[[Dataset, int], Split]


def make_split(dataset: Dataset, *, protocol: str, seed: int) -> Split:
    """Divide the nodes of ``dataset`` by a named protocol; the same arguments give the same split on every machine.

    Random protocols read one permutation of the nodes from ``numpy.random.RandomState(seed)``, whose stream is frozen
    across versions of numpy.

    Args:
        dataset: the graph; take its ``largest_component()`` first if that is what will be trained on.
        protocol: ``planetoid`` (the published 20 per class, 500, 1000), ``ogb`` (the published split by year),
            ``published`` (whichever split came with the dataset), ``digl`` (a development set of 1500 nodes, 5000 on
            Coauthor CS: of it 20 per class train and the rest validate; all other nodes test; behind the paper's
            random-split figures) or ``shchur`` (20 per class train, 30 per class validate, the rest tests).
        seed: from 0 to 2**32 - 1; published splits do not depend on it.
    """
    if protocol not in PROTOCOLS:
        raise UnknownName("protocol", protocol, PROTOCOLS)
    if not 0 <= seed < 2**32:
        raise ValueError(f"`seed` must be from 0 to 2**32 - 1; got {seed}.")
    return PROTOCOLS[protocol](dataset, seed)


def planetoid(dataset: Dataset, seed: int) -> Split:
    """The published masks of Cora, CiteSeer and PubMed."""
    return _published_by(dataset, seed, protocol="planetoid")


def ogb(dataset: Dataset, seed: int) -> Split:
    """The published masks of ogbn-arxiv: papers until 2017 train, those of 2018 validate, later ones test."""
    return _published_by(dataset, seed, protocol="ogb")


def published(dataset: Dataset, seed: int) -> Split:
    """The split that came with the dataset, under its own protocol's name."""
    if dataset.published is None:
        raise ValueError(f"the dataset {dataset.name!r} has no published split: use the protocol 'digl' or 'shchur'.")
    return replace(dataset.published, seed=seed)


def digl(dataset: Dataset, seed: int) -> Split:
    """A random development set, of it 20 per class train and the rest validates; all other nodes test.

    A development set with fewer than 20 nodes of some class (one seed in a hundred on Computers) is drawn again
    from the same stream.
    """
    size = LARGE_DEVELOPMENT.get(dataset.name, DEVELOPMENT)
    if dataset.num_nodes <= size:
        raise ValueError(
            f"the protocol 'digl' sets {size} nodes aside for development and tests on the others, but "
            f"{dataset.name!r} has {dataset.num_nodes} nodes: use the protocol 'shchur'."
        )
    y = dataset.y.cpu().numpy()
    _check_classes(y, y, needed=TRAIN_PER_CLASS, protocol="digl", among=f"{dataset.name!r}")
    random = np.random.RandomState(seed)
    for _ in range(DRAWS):
        order = random.permutation(dataset.num_nodes)
        development, rest = order[:size], order[size:]
        if _counts(y[development], like=y).min() >= TRAIN_PER_CLASS:
            train = _rank_in_class(development, y) < TRAIN_PER_CLASS
            return _split(dataset, development[train], development[~train], rest, protocol="digl", seed=seed)
    _check_classes(y[development], y, needed=TRAIN_PER_CLASS, protocol="digl", among=f"a development set of {size}")
    raise AssertionError("a short class is refused above")


def shchur(dataset: Dataset, seed: int) -> Split:
    """20 random nodes of each class train, 30 of each validate, the rest tests."""
    y, needed = dataset.y.cpu().numpy(), TRAIN_PER_CLASS + VAL_PER_CLASS
    _check_classes(y, y, needed=needed, protocol="shchur", among=f"{dataset.name!r}")
    order = np.random.RandomState(seed).permutation(dataset.num_nodes)
    rank = _rank_in_class(order, y)
    train, test = rank < TRAIN_PER_CLASS, rank >= needed
    return _split(dataset, order[train], order[~train & ~test], order[test], protocol="shchur", seed=seed)


PROTOCOLS: Mapping[str, Protocol] = MappingProxyType(
    {"planetoid": planetoid, "ogb": ogb, "published": published, "digl": digl, "shchur": shchur}
)


def _published_by(dataset: Dataset, seed: int, *, protocol: str) -> Split:
    split = published(dataset, seed)
    if split.protocol != protocol:
        raise ValueError(
            f"the published split of {dataset.name!r} is {split.protocol!r}, not {protocol!r}: "
            f"use the protocol {split.protocol!r}, 'digl' or 'shchur'."
        )
    return split


def _split(dataset: Dataset, train: Nodes, val: Nodes, test: Nodes, *, protocol: str, seed: int) -> Split:
    masks = [mask(torch.from_numpy(nodes), num_nodes=dataset.num_nodes) for nodes in (train, val, test)]
    return Split(masks[0], masks[1], masks[2], protocol, seed).to(dataset.y.device)


def _rank_in_class(order: Nodes, y: Nodes) -> Nodes:
    """For each node of ``order``, how many nodes of its class stand before it there."""
    classes = y[order]
    grouped = np.argsort(classes, kind="stable")
    sizes = np.bincount(classes)
    starts = np.cumsum(sizes) - sizes
    rank = np.empty_like(grouped)
    rank[grouped] = np.arange(order.shape[0]) - starts[classes[grouped]]
    return rank


def _counts(y: Nodes, *, like: Nodes) -> Nodes:
    return np.bincount(y, minlength=int(like.max()) + 1)


def _check_classes(y: Nodes, like: Nodes, *, needed: int, protocol: str, among: str) -> None:
    counts = _counts(y, like=like)
    short = int(counts.argmin())
    if counts[short] < needed:
        raise ValueError(
            f"the protocol {protocol!r} needs {needed} nodes of every class, but class {short} has {counts[short]} in "
            f"{among}: use a published split, or merge or leave out the class."
        )
