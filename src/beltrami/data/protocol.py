"""Protocols: the literature's named rules for training, validation and test sets."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from beltrami.arguments import Seed, checked
from beltrami.data.dataset import Dataset, Split, mask
from beltrami.errors import UnknownName

TRAIN_PER_CLASS = 20
VAL_PER_CLASS = 30
DEVELOPMENT = 1500
LARGE_DEVELOPMENT = {"coauthor-cs": 5000}
DRAWS = 100

Nodes = NDArray[np.int64]
Protocol = Callable[[Dataset, int], Split]


@checked
def make_split(dataset: Dataset, *, protocol: str, seed: Seed) -> Split:
    """Split the nodes of ``dataset`` by a named protocol; the same arguments give the same split on every machine.

    Random protocols draw permutations of the nodes from ``numpy.random.RandomState(seed)``, whose stream is the same in
    all versions of numpy. A published split does not depend on the seed; where several were published, the seed is the
    number of one. To train on the ``largest_component()`` of a dataset, split that.

    The protocols are ``planetoid`` (the published 20 per class, 500, 1000), ``ogb`` (OGB's split, by year or by sales),
    ``pei`` (ten published splits, 48, 32 and 20 per cent of the nodes), ``platonov`` (ten published splits, 50, 25 and
    25 per cent), ``published`` (the published split or splits of the dataset, of any protocol), ``digl`` (a development
    set of 1500 nodes, 5000 on Coauthor CS, of which 20 per class train and the rest validate; all other nodes test; the
    paper's random splits) and ``shchur`` (20 per class train, 30 per class validate, the rest test).
    """
    if protocol not in PROTOCOLS:
        raise UnknownName("protocol", protocol, PROTOCOLS)
    return PROTOCOLS[protocol](dataset, seed)


def published(dataset: Dataset, seed: int, *, protocol: str | None = None) -> Split:
    """Return the published split, of several the one with the number ``seed``; refuse one of another protocol than
    ``protocol``, if given."""
    splits = dataset.all_splits
    if not splits:
        raise ValueError(f"the dataset {dataset.name!r} has no published split: use the protocol 'digl' or 'shchur'.")
    split = splits[min(seed, len(splits) - 1)]
    if protocol is not None and split.protocol != protocol:
        found = f"the published split of {dataset.name!r} is {split.protocol!r}, not {protocol!r}"
        raise ValueError(f"{found}: use the protocol {split.protocol!r}, 'digl' or 'shchur'.")
    if seed >= len(splits) > 1:
        found = f"{len(splits)} splits of {dataset.name!r} were published, and the seed of the split is {seed}"
        raise ValueError(f"{found}: choose one from 0 to {len(splits) - 1}.")
    return replace(split, seed=seed)


def digl(dataset: Dataset, seed: int) -> Split:
    """Draw a development set, of which 20 per class train and the rest validate; all other nodes test.

    A development set with fewer than 20 nodes of some class (one seed in a hundred on Computers) is drawn again from
    the same stream.
    """
    size = LARGE_DEVELOPMENT.get(dataset.name, DEVELOPMENT)
    if dataset.num_nodes <= size:
        found = (
            f"takes {size} nodes for development and tests on the others, but {dataset.name!r} has {dataset.num_nodes}"
        )
        raise ValueError(f"the protocol 'digl' {found} nodes: use the protocol 'shchur'.")
    y = dataset.y.cpu().numpy()
    _check_classes(y, y, needed=TRAIN_PER_CLASS, protocol="digl", among=f"{dataset.name!r}")
    random = np.random.RandomState(seed)
    for _ in range(DRAWS):
        order = random.permutation(dataset.num_nodes)
        development, rest = order[:size], order[size:]
        if np.bincount(y[development], minlength=int(y.max()) + 1).min() >= TRAIN_PER_CLASS:
            break
    _check_classes(y[development], y, needed=TRAIN_PER_CLASS, protocol="digl", among=f"a development set of {size}")
    train = _rank_in_class(development, y) < TRAIN_PER_CLASS
    return _split(dataset, development[train], development[~train], rest, protocol="digl", seed=seed)


def shchur(dataset: Dataset, seed: int) -> Split:
    """Draw 20 nodes of each class to train and 30 of each to validate; the rest test."""
    y, needed = dataset.y.cpu().numpy(), TRAIN_PER_CLASS + VAL_PER_CLASS
    _check_classes(y, y, needed=needed, protocol="shchur", among=f"{dataset.name!r}")
    order = np.random.RandomState(seed).permutation(dataset.num_nodes)
    rank = _rank_in_class(order, y)
    train, test = rank < TRAIN_PER_CLASS, rank >= needed
    return _split(dataset, order[train], order[~train & ~test], order[test], protocol="shchur", seed=seed)


PROTOCOLS: Mapping[str, Protocol] = {
    "planetoid": partial(published, protocol="planetoid"),
    "ogb": partial(published, protocol="ogb"),
    "pei": partial(published, protocol="pei"),
    "platonov": partial(published, protocol="platonov"),
    "published": published,
    "digl": digl,
    "shchur": shchur,
}
"""Ways to split the nodes of a dataset, by name; :func:`make_split` takes one of these names."""


def _split(dataset: Dataset, train: Nodes, val: Nodes, test: Nodes, *, protocol: str, seed: int) -> Split:
    masks = [mask(torch.from_numpy(nodes), num_nodes=dataset.num_nodes) for nodes in (train, val, test)]
    return Split(masks[0], masks[1], masks[2], protocol, seed).to(dataset.y.device)


def _rank_in_class(order: Nodes, y: Nodes) -> Nodes:
    """Return, for each node of ``order``, the number of nodes of its class before it."""
    member = y[order][:, None] == np.arange(int(y.max()) + 1)
    rank: Nodes = member.cumsum(0)[member] - 1
    return rank


def _check_classes(y: Nodes, like: Nodes, *, needed: int, protocol: str, among: str) -> None:
    if y.min() < 0:
        why = f"needs a class at every node, and {int((y < 0).sum())} have none in {among}"
        raise ValueError(f"the protocol {protocol!r} {why}: use the protocol 'published'.")
    counts = np.bincount(y, minlength=int(like.max()) + 1)
    short = int(counts.argmin())
    if counts[short] < needed:
        why = f"needs {needed} nodes of every class, but class {short} has {counts[short]} in {among}"
        raise ValueError(f"the protocol {protocol!r} {why}: use a published split, or merge or remove the class.")
