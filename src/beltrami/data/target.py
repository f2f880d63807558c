"""Targets of a user's nodes: classes, several labels or numbers, read from the label columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from beltrami.data.table import Column, Numbers, Words, as_numbers, to_words
from beltrami.errors import UnknownName

TargetKind = Literal["classes", "labels", "numbers"]
KINDS: tuple[TargetKind, ...] = ("classes", "labels", "numbers")
MOST_CLASSES = 20  # whole numbers with more values than this, in more than a tenth of the labels, are not classes
JOINED = ";"  # joins several labels in one field
YES, NO = ("1", "1.0", "true", "yes", "t", "y"), ("0", "0.0", "false", "no", "f", "n")


@dataclass(frozen=True, eq=False)
class Targets:
    """What is to be predicted at each node.

    ``kind`` classes: ``y`` (n,) holds places in ``names``, -1 where unknown. labels: ``y`` (n, len(names)) holds 0 and
    1. numbers: ``y`` (n, len(names)) holds numbers, one column for each name. NaN where unknown.
    """

    kind: TargetKind
    names: tuple[str, ...]
    y: Tensor


def read_targets(labels: Mapping[str, Column], *, kind: str | None = None) -> Targets:
    """Return the targets in the label columns.

    Without a ``kind``: several columns of 0 and 1 (or yes and no) are labels, several columns of other numbers are
    numbers. One column with ``;`` in a field holds labels joined by it. One column of numbers with a fraction, or with
    over 20 different values that are over a tenth of the labels, holds numbers. All else holds classes.
    """
    if kind is not None and kind not in KINDS:
        raise UnknownName("task", kind, KINDS)
    if not labels:
        raise ValueError("no label column was found: name it with `--label`, a column of the table of nodes.")
    if len(labels) > 1:
        return _several(labels, kind)
    ((name, column),) = labels.items()
    if kind is None:
        kind = _kind_of(column)
    if kind == "numbers":
        return Targets("numbers", (name,), torch.from_numpy(_values(name, column).astype(np.float32))[:, None])
    words = to_words(column)
    if kind == "classes":
        used = sorted(np.unique(words.codes[words.codes >= 0]).tolist())
        place = np.full(len(words.names) + 1, -1)
        place[used] = np.arange(len(used))
        return Targets("classes", tuple(words.names[c] for c in used), torch.from_numpy(place[words.codes]))
    return _joined(words)


def _several(labels: Mapping[str, Column], kind: str | None) -> Targets:
    """Return the targets in several columns, each a label or a number."""
    if kind == "classes":
        raise ValueError(f"{len(labels)} label columns cannot hold one class: name one column, or set `--task labels`.")
    if kind == "numbers" or (kind is None and not all(_is_binary(column) for column in labels.values())):
        columns = [_values(name, column) for name, column in labels.items()]
        return Targets("numbers", tuple(labels), torch.from_numpy(np.stack(columns, 1).astype(np.float32)))
    for name, column in labels.items():
        if not _is_binary(column):
            raise ValueError(f"the label column {name!r} must hold 0 and 1, or yes and no, and nothing else.")
    columns = [_binary(column) for column in labels.values()]
    return Targets("labels", tuple(labels), torch.from_numpy(np.stack(columns, 1).astype(np.float32)))


def _joined(words: Words) -> Targets:
    """Return the labels that each field joins."""
    fields = [[part.strip() for part in name.split(JOINED) if part.strip()] for name in words.names]
    names = sorted({part for each in fields for part in each})
    place = {name: c for c, name in enumerate(names)}
    table = np.zeros((len(fields) + 1, len(names)), dtype=np.float32)
    table[-1] = np.nan  # the last row is for fields without a value
    for row, each in enumerate(fields):
        table[row, [place[part] for part in each]] = 1
    return Targets("labels", tuple(names), torch.from_numpy(table[words.codes]))


def _kind_of(column: Column) -> TargetKind:
    if isinstance(column, Words) and any(JOINED in name for name in column.names):
        return "labels"
    numbers = column if isinstance(column, Numbers) else as_numbers(column)
    if numbers is None:
        return "classes"
    present = numbers.values[~np.isnan(numbers.values)]
    distinct = len(np.unique(present))
    if bool((present != np.round(present)).any()) or distinct > max(MOST_CLASSES, len(present) / 10):
        return "numbers"
    return "classes"


def _values(name: str, column: Column) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    numbers = column if isinstance(column, Numbers) else as_numbers(column)
    if numbers is None:
        raise ValueError(f"the label column {name!r} holds words where `--task numbers` needs numbers.")
    return numbers.values


def _is_binary(column: Column) -> bool:
    return all(name.lower() in (*YES, *NO) for name in to_words(column).names)


def _binary(column: Column) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return 0 and 1 for each row, NaN where missing."""
    words = to_words(column)
    values = np.array([float(name.lower() in YES) for name in words.names] + [np.nan])
    return values[words.codes]
