"""A user's graph as it was understood: ids, undirected edges, columns, labels, split, and a record of dropped rows."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beltrami.data.dataset import undirected
from beltrami.data.table import Column, DataTable, Words, as_numbers, floats
from beltrami.errors import DataError

DROPS_LISTED = 100
"""Dropped rows listed for each reason; further ones are counted."""

EXTREME = 1e-30  # smallest weight of an edge, and the inverse of the largest


@dataclass(frozen=True)
class Dropped:
    """A row that was not used: its file, its line (its number from 1 in files without lines) and the reason."""

    file: str
    line: int
    reason: str


@dataclass(frozen=True, eq=False)
class DropLog:
    """The rows dropped so far: the first ``DROPS_LISTED`` of each rule, and how often each rule was applied."""

    drops: list[Dropped] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def drop(self, table: DataTable, rows: NDArray[Any], rule: str, reason: Callable[[int], str]) -> None:
        """Record that ``rule`` dropped ``rows`` of ``table``; ``reason`` words one row."""
        listed = max(0, DROPS_LISTED - self.counts[rule])
        self.count(rule, len(rows))
        for row in map(int, rows[:listed]):
            self.drops.append(Dropped(table.source, int(table.lines[row]), reason(row)))

    def count(self, rule: str, times: int) -> None:
        """Record that ``rule`` was applied ``times`` times, unless that is zero."""
        if times:
            self.counts[rule] += times


@dataclass(frozen=True, eq=False)
class GraphTable:
    """A graph with named columns at its nodes, as read from a user's files or objects.

    Args:
        source: the file, folder or object it was read from.
        ids: the user's ids of the nodes; (n,).
        edge_index: both directions of every edge once, as ``undirected`` gives them, (2, m); None if there was no edge
            list, so that the graph is still to be built from the features.
        weight: positive edge weights (m,), float32, equal in both directions; None if there are none.
        columns: the features by name, rows in the order of ``ids``.
        x: a feature matrix (n, d), float32, dense or sparse COO, of sources that have one; None elsewhere.
        labels: the label column by name, several if each node may have several labels, none if nothing is labelled.
            Words are sorted (by value where all are numbers) and coded -1 where the label is missing; numbers come only
            from typed sources with fractional values (:func:`~beltrami.data.table.as_numbers` converts words).
        split: for each node the word of its set (train, val, calibration, test), -1 for none; None if not given.
        drops: rows that were not used; at most ``DROPS_LISTED`` for each rule.
        counts: how often each rule was applied.
        roles: the columns that were taken as ``id``, ``source``, ``target``, ``weight``, ``label`` and ``split``.
    """

    source: str
    ids: list[str]
    edge_index: Tensor | None = None
    weight: Tensor | None = None
    columns: dict[str, Column] = field(default_factory=dict)
    x: Tensor | None = None
    labels: dict[str, Column] = field(default_factory=dict)
    split: Words | None = None
    drops: list[Dropped] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.ids:
            raise DataError(f"{self.source} has no nodes: at least one row with an id is needed.")
        parts: dict[str, Column | Tensor | None] = {**self.columns, **self.labels, "split": self.split, "x": self.x}
        for name, part in parts.items():
            rows = self.num_nodes if part is None else part.shape[0] if isinstance(part, Tensor) else len(part)
            if rows != self.num_nodes:
                raise DataError(f"{self.source}: {name!r} has {rows} rows where the graph has {self.num_nodes} nodes.")

    @property
    def num_nodes(self) -> int:
        return len(self.ids)

    @property
    def num_edges(self) -> int:
        """Undirected edges: half the columns of ``edge_index``, 0 where that is None."""
        return 0 if self.edge_index is None else self.edge_index.shape[1] // 2

    @property
    def label(self) -> Column | None:
        """The label column if there is exactly one."""
        return next(iter(self.labels.values())) if len(self.labels) == 1 else None


def clean_edges(
    ends: NDArray[np.int64], weight: Column | None, *, rows: DataTable, num_nodes: int, log: DropLog
) -> tuple[Tensor, Tensor | None]:
    """Return both directions of every edge once, (2, m), and the weights (m,), and record the rules applied in ``log``.

    Self-loops and edges of weight zero are removed; a row without its weight is dropped. Repeated rows and the two
    directions of an edge count once, with the largest of their weights. A negative or unreadable weight is refused.

    Args:
        ends: node numbers of the two ends of each row of ``rows``, (2, rows).
    """
    ends, values = proper_edges(ends, weight, rows=rows, log=log)
    low, high = ends.min(0), ends.max(0)
    pairs, pair = np.unique(low * num_nodes + high, return_inverse=True)
    directed = len(np.unique(ends[0] * num_nodes + ends[1]))
    log.count("repeated edges merged", len(low) - directed)
    log.count("edges given in both directions, counted once", directed - len(pairs))
    log.count("edges given in one direction, used in both", 2 * len(pairs) - directed)
    edge_index = undirected(torch.from_numpy(np.stack((pairs // num_nodes, pairs % num_nodes))), num_nodes=num_nodes)
    if values is None:
        return edge_index, None
    largest = np.zeros(len(pairs))
    np.maximum.at(largest, pair, values)
    keys = edge_index.amin(0) * num_nodes + edge_index.amax(0)
    return edge_index, torch.from_numpy(largest[np.searchsorted(pairs, keys.numpy())].astype(np.float32))


def proper_edges(
    ends: NDArray[np.int64], weight: Column | None, *, rows: DataTable, log: DropLog
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Return the ends (2, rows) and weights of the rows that are no self-loops and have a positive weight."""
    values = None
    if weight is not None:
        values = checked_weights(weight, rows)
        log.drop(rows, np.flatnonzero(np.isnan(values)), "edges without a weight dropped", lambda _: "no weight")
        log.count("edges of weight zero removed", int((values == 0).sum()))
        ends, values = ends[:, values > 0], values[values > 0]
    proper = no_loops(ends, log)
    return ends[:, proper], None if values is None else values[proper]


def no_loops(ends: NDArray[np.int64], log: DropLog) -> NDArray[np.bool_]:
    """Return which of the edges with these ends (2, rows) are no self-loops, (rows,); the others are counted."""
    proper: NDArray[np.bool_] = ends[0] != ends[1]
    log.count("self-loops removed", int((~proper).sum()))
    return proper


def checked_weights(weight: Column, rows: DataTable) -> NDArray[np.float64]:
    """Return the weights (rows,), NaN where missing; refuse the first that is negative, extreme or no number."""
    if isinstance(weight, Words):
        numbers = as_numbers(weight)
        if numbers is None:
            unread = [code for code, name in enumerate(weight.names) if floats([name]) is None]
            row = int(np.flatnonzero(np.isin(weight.codes, unread))[0])
            raise DataError(
                f"{rows.where(row)}: the weight {weight.names[weight.codes[row]]!r} is no number: correct it, or empty "
                "the field to leave the edge out."
            )
        weight = numbers
    size = np.abs(weight.values)
    wrong = np.flatnonzero((weight.values < 0) | (size > 1 / EXTREME) | ((size < EXTREME) & (size > 0)))
    if len(wrong):
        raise DataError(
            f"{rows.where(int(wrong[0]))}: the weight {weight.values[wrong[0]]:g} is negative or beyond "
            f"{EXTREME:g} to {1 / EXTREME:g}: weights measure similarity and must be positive; 0 removes the edge."
        )
    return weight.values


def node_numbers(words: Words, position: Mapping[str, int]) -> NDArray[np.int64]:
    """Return for each row the ``position`` of its word, -1 if the word is missing or has no position."""
    found = np.fromiter((position.get(name, -1) for name in words.names), np.int64, len(words.names))
    return np.append(found, -1)[words.codes]
