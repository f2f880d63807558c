"""Splits of a user's labels into nodes for training, validation and calibration, drawn or named by a column."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beltrami.data.dataset import Split, mask
from beltrami.data.table import Words

CALIBRATION = 0.2  # share of the labels set aside for prediction sets
LEAST_CALIBRATION = 19  # fewer are not set aside: sets of 90% coverage need 9 of them, of 95% coverage 19
VALIDATION = 0.25  # share of the remaining labels that validate
FEW_PER_CLASS = 50  # labels per class below which training is cross-validated
FOLDS = 5
PROTOCOL = "labelled"
SETS: Mapping[str, str] = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "dev": "val",
    "calibration": "calibration",
    "test": "test",
    "testing": "test",
}

Nodes = NDArray[np.int64]
Mask = NDArray[np.bool_]


def labelled(y: Tensor) -> Tensor:
    """Return the mask (n,) of nodes with a target: classes (n,) from 0, or numbers (n,) or (n, k) without NaN."""
    if not y.is_floating_point():
        return y >= 0
    return ~torch.isnan(y.reshape(len(y), -1)).any(1)


def split_labels(
    y: Tensor, *, seed: int, calibration: float = CALIBRATION, column: Words | None = None, folds: int = FOLDS
) -> tuple[Split, ...]:
    """Return one split of the labelled nodes, or several folds of cross-validation where labels are few.

    The rules, in this order, from ``numpy.random.RandomState(seed)``:

    1. With a ``column``, its words train, val (valid, validation, dev), calibration and test name the sets, and nodes
       with other words or none are predicted. Calibration nodes that no word names are drawn from the validation
       nodes, and from the training nodes if there are none; validation nodes that no word names from the training
       nodes, by the rules below. Test nodes are never drawn.
    2. Calibration nodes: a share ``calibration`` of the labels, drawn uniformly, as the guarantee of prediction sets
       requires, except that two labels of each class are left. Fewer than 19 are not set aside at all, and
       0 sets none aside: then there are no prediction sets.
    3. Validation nodes: with at least fifty labels per class on average, a quarter of each class of the rest, at least
       one. With fewer, ``folds`` folds, stratified by class: each fold validates once. A class with a single label
       always trains. Of a node with several labels the rarest counts as its class; numbers are drawn without strata.
    """
    if not 0 <= calibration < 1:
        raise ValueError(f"the share of calibration nodes must be at least 0 and below 1; got {calibration}.")
    known, random = labelled(y).numpy(), np.random.RandomState(seed)
    named = _named_sets(column, known)
    strata = _strata(y, known)
    rest, test = named.get("train", known), named.get("test", np.zeros_like(known))
    if int(rest.sum()) < 2:
        raise ValueError(f"{int(rest.sum())} nodes have labels to train on: give at least two a class.")
    aside = named.get("calibration")
    if aside is None:
        aside = _draw_calibration(strata, named.get("val", rest), calibration, random)
    rest = rest & ~aside
    validated = [named["val"] & ~aside] if "val" in named else _draw_validation(strata, rest, random, folds)
    return tuple(_split(rest & ~each, each, test, aside, seed) for each in validated)


def check_training(names: Sequence[str], y: Tensor, splits: Sequence[Split]) -> None:
    """Refuse splits in which a class (n,), or a label (n, labels), has no training node."""
    for split in splits:
        known = y[split.train]
        found = torch.bincount(known, minlength=len(names)) if known.dim() == 1 else (known > 0).sum(0)
        missing = [name for name, count in zip(names, found.tolist(), strict=True) if not count]
        if missing:
            raise ValueError(f"no training node has the label {missing[0]!r}: give it some, or leave the label out.")


def hold_out(split: Split, *, share: float = CALIBRATION) -> Split:
    """Return a split of which a share of the validation nodes, drawn uniformly by the split's seed, calibrates."""
    nodes = split.val.nonzero()[:, 0]
    order = np.random.RandomState(split.seed).permutation(len(nodes))
    aside = torch.zeros_like(split.val)
    aside[nodes[torch.from_numpy(order[: int(share * len(nodes))])]] = True
    return replace(split, val=split.val & ~aside, calibration=aside)


def _named_sets(column: Words | None, known: Mask) -> dict[str, Mask]:
    """Return the labelled nodes of each set that a column names."""
    if column is None:
        return {}
    words = [SETS.get(name.strip().lower()) for name in column.names]
    found = {
        name: np.isin(column.codes, [c for c, word in enumerate(words) if word == name]) & known
        for name in SETS.values()
    }
    found = {name: mask for name, mask in found.items() if mask.any()}
    if "train" not in found:
        raise ValueError(
            f"the split column names no labelled node `train`; its words are {', '.join(column.names[:6]) or 'none'}: "
            "write train, val, calibration or test for labelled nodes."
        )
    return found


def _strata(y: Tensor, known: Mask) -> Nodes:
    """Return the class of each node; of several labels the rarest, and zero for all numbers."""
    values: Nodes = y.numpy()
    if not y.is_floating_point():
        return values
    if y.dim() == 1 or not bool(np.isin(values[known], (0, 1)).all()):
        return np.zeros(len(values), dtype=np.int64)
    count = (values[known] > 0).sum(0)
    rarity = np.where(values > 0, count, len(values) + 1)
    strata = np.where((values > 0).any(1), rarity.argmin(1), len(count))
    single = np.bincount(strata[known], minlength=1).max() < 2  # then nothing could validate
    return np.zeros_like(strata) if single else strata


def _draw_calibration(strata: Nodes, rest: Mask, share: float, random: np.random.RandomState) -> Mask:
    """Return uniformly drawn nodes, of which the last two of each class are given back; none if they are too few."""
    nodes = random.permutation(np.flatnonzero(rest))
    wanted = int(share * len(nodes))
    rank = np.empty(len(nodes), dtype=np.int64)  # labels of the class that come later in the order
    for c in np.unique(strata[nodes]):
        places = np.flatnonzero(strata[nodes] == c)
        rank[places] = np.arange(len(places))[::-1]
    chosen = nodes[:wanted][rank[:wanted] >= 2]
    return _mask(chosen if len(chosen) >= LEAST_CALIBRATION else chosen[:0], len(rest))


def _draw_validation(strata: Nodes, rest: Mask, random: np.random.RandomState, folds: int) -> list[Mask]:
    """Return the validation nodes, or those of each fold."""
    nodes = random.permutation(np.flatnonzero(rest))
    classes = [nodes[strata[nodes] == c] for c in np.unique(strata[nodes])]
    if len(nodes) >= FEW_PER_CLASS * len(classes) and len(nodes) >= 2 * FEW_PER_CLASS:
        drawn = [members[: max(1, round(VALIDATION * len(members)))] for members in classes if len(members) > 1]
        return [_mask(np.concatenate(drawn), len(rest))]
    fold, start = np.full(len(rest), -1), 0
    for members in classes:
        if len(members) > 1:
            fold[members] = (start + np.arange(len(members))) % folds
            start += len(members)
    if (fold < 0).all():
        raise ValueError("every class has a single label: give at least one class two, so that one can validate.")
    return [fold == k for k in range(folds) if (fold == k).any()]


def _split(train: Mask, val: Mask, test: Mask, aside: Mask, seed: int) -> Split:
    masks = [torch.from_numpy(np.ascontiguousarray(each)) for each in (train, val, test, aside)]
    return Split(masks[0], masks[1], masks[2], PROTOCOL, seed, calibration=masks[3])


def _mask(nodes: Nodes, num_nodes: int) -> Mask:
    chosen: Mask = mask(torch.from_numpy(nodes), num_nodes=num_nodes).numpy()
    return chosen
