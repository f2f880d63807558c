"""Preprocessing: rules that turn the columns of a user's nodes into features, learned once and saved with a model."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from torch import Tensor

from beltrami.data.table import Column, Numbers, Words, to_words
from beltrami.graph.sparse_matrix import from_scipy, to_scipy

Kind = Literal["counts", "measurements"]
Array = NDArray[np.float64]
Matrix = Array | csr_array
COUNTS_COLUMNS = 16  # fewer columns are never taken for counts
COUNTS_ZEROS = 0.5  # share of zeros from which non-negative numbers are taken for counts
OUTLYING = 10.0  # a column of counts with values so many times the usual size is scaled down to the usual size
CLIP = 5.0  # standard deviations at which measurements are cut off
CATEGORIES = 100  # most frequent words of a column that get a feature each


@dataclass(frozen=True)
class WordRule:
    """The words of a column that get a feature each; other and missing words have 0 in all of them."""

    name: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class NumberRules:
    """How the numeric columns are scaled.

    ``kept``: the indices of the columns that vary. ``centre``, ``scale``: a value v of a kept column becomes
    (v - centre) / scale, cut off at ``CLIP`` for measurements; ``size``: the norm of a row of counts. ``flagged``:
    indices of columns with missing values, for each of which a feature says where its value was missing.
    """

    kind: Kind
    names: tuple[str, ...]
    kept: tuple[int, ...]
    centre: tuple[float, ...]
    scale: tuple[float, ...]
    flagged: tuple[int, ...] = ()
    size: float = 1.0

    def __post_init__(self) -> None:
        if not len(self.kept) == len(self.centre) == len(self.scale):
            raise ValueError("each kept column needs a centre and a scale")
        if not all(0 <= c < len(self.names) for c in (*self.kept, *self.flagged)):
            raise ValueError(f"the kept and flagged columns must be among the {len(self.names)} columns")
        if not all(map(math.isfinite, (*self.centre, *self.scale, self.size))):
            raise ValueError("centres, scales and size must be finite")


@dataclass(frozen=True)
class Preprocessing:
    r"""Features from the columns of a node table, by rules learned on the nodes of the training graph, without labels.

    *Counts*: at least 16 numeric columns, none negative, more than half of all values zero; for example bags of words.
    A column whose mean non-zero value is over ten times the median column's is scaled down to that. Each row is then
    divided by its Euclidean norm and multiplied by the root of the mean number of its non-zeros, so that neither the
    units nor the length of a text count; the matrix stays sparse.

    *Measurements*: all other numeric columns. Each is centred at its median and divided by its interquartile range over
    1.349, by its standard deviation where that range is 0, and cut off at 5. A missing value becomes the median, and a
    further feature says where values are missing.

    *Words*: a feature of 0 and 1 for each of the 100 most frequent words of a column. Columns in which over half of
    the rows have a word of their own, such as names, are left out. Columns of a single value are left out.

    *No features*: where nothing is left, every node of the training graph, by its id in ``nodes``, has a feature of its
    own. New nodes have none, and receive the states of their neighbours by diffusion.
    """

    numbers: NumberRules
    words: tuple[WordRule, ...] = ()
    left_out: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()

    @staticmethod
    def learn(
        columns: Mapping[str, Column], x: Tensor | None = None, *, ids: Sequence[str] = (), one_unit: bool = False
    ) -> "Preprocessing":
        """Learn the rules from the columns of a node table, or from a feature matrix ``x`` in place of columns.

        ``one_unit``: divide all measurements by one number, the root mean square of their standard deviations, instead
        of each column by its own spread; for columns of one kind, such as the pixels of an image.
        """
        found = {name: _word_rule(name, column) for name, column in columns.items() if isinstance(column, Words)}
        names, values = _numeric(columns, x)
        numbers = _learn_numbers(names, values)
        if one_unit and numbers.kind == "measurements" and numbers.kept:
            unit = float(np.sqrt(np.nanvar(np.asarray(values)[:, list(numbers.kept)], axis=0).mean()))
            numbers = replace(numbers, scale=(unit,) * len(numbers.kept))
        used = {*numbers.kept, *numbers.flagged}
        left_out = [name for name, rule in found.items() if not rule.words]
        left_out += [name for c, name in enumerate(names) if c not in used]
        words = tuple(rule for rule in found.values() if rule.words)
        nodes = () if words or used else tuple(ids)
        return Preprocessing(numbers, words, tuple(left_out), nodes)

    @property
    def num_features(self) -> int:
        return (
            len(self.nodes)
            + len(self.numbers.kept)
            + len(self.numbers.flagged)
            + sum(len(rule.words) for rule in self.words)
        )

    def __call__(self, columns: Mapping[str, Column], x: Tensor | None = None, *, ids: Sequence[str] = ()) -> Tensor:
        """Return the features of nodes, (n, features), float32, sparse for counts; refuse columns that differ."""
        if self.nodes:
            return from_scipy(_identity(self.nodes, ids))
        self._check(columns, x)
        rows = len(next(iter(columns.values()))) if x is None else len(x)
        _, values = _numeric({name: columns[name] for name in self.numbers.names} if x is None else {}, x, rows=rows)
        words = [_one_hot(rule, columns[rule.name]) for rule in self.words]
        if self.numbers.kind == "counts":
            parts = [_scale_counts(self.numbers, values), *(csr_array(part) for part in words)]
            return from_scipy(csr_array(hstack(parts, format="csr")))
        dense = values if isinstance(values, np.ndarray) else values.toarray()
        return torch.from_numpy(np.hstack([_scale_measurements(self.numbers, dense), *words]).astype(np.float32))

    def to_json(self) -> dict[str, Any]:
        """Return the rules as plain values, which :func:`beltrami.config.parser.parse` reads."""
        return asdict(self)

    def _check(self, columns: Mapping[str, Column], x: Tensor | None) -> None:
        """Refuse nodes without the columns that the rules were learned on; further columns are not looked at."""
        if x is not None:
            if x.shape[1] != len(self.numbers.names):
                raise ValueError(
                    f"the features have {x.shape[1]} columns where the model has {len(self.numbers.names)}."
                )
            return
        for name in (*self.numbers.names, *(rule.name for rule in self.words)):
            if name not in columns:
                raise ValueError(f"the nodes have no column {name!r}, which the model was trained on: add it.")
        for name in self.numbers.names:
            if isinstance(columns[name], Words):
                raise ValueError(f"the column {name!r} holds words where the model was trained on numbers: mend it.")


def _numeric(columns: Mapping[str, Column], x: Tensor | None, *, rows: int = 0) -> tuple[tuple[str, ...], Matrix]:
    """Return the names and the values of the numeric columns; dense values are float64 with NaN where missing."""
    if x is not None:
        names = tuple(f"x[{c}]" for c in range(x.shape[1]))
        return names, x.double().numpy() if x.layout == torch.strided else to_scipy(x.double())
    numbers = {name: column.values for name, column in columns.items() if isinstance(column, Numbers)}
    return tuple(numbers), np.stack(list(numbers.values()), 1) if numbers else np.zeros((rows, 0))


def _learn_numbers(names: tuple[str, ...], values: Matrix) -> NumberRules:
    """Return the rules for counts if the values are sparse or look like counts, else those for measurements."""
    if isinstance(values, csr_array):
        return _learn_counts(names, values)
    enough = values.shape[1] >= COUNTS_COLUMNS and values.shape[0] > 0
    if enough and not bool((values < 0).any()) and float((values == 0).mean()) > COUNTS_ZEROS:
        return _learn_counts(names, values)
    return _learn_measurements(names, values)


def _learn_counts(names: tuple[str, ...], values: Matrix) -> NumberRules:
    counts = _without_missing(values)
    stored = np.bincount(counts.indices, minlength=len(names))
    sums = np.bincount(counts.indices, weights=np.abs(counts.data), minlength=len(names))
    mean = np.divide(sums, stored, out=np.zeros(len(names)), where=stored > 0)
    largest = abs(counts).max(0).toarray().ravel()
    constant = (stored == values.shape[0]) & (counts.min(0).toarray().ravel() == counts.max(0).toarray().ravel())
    kept = np.flatnonzero((stored > 0) & ~constant & (largest > 0))
    usual = float(np.median(mean[kept])) if len(kept) else 1.0
    scale = np.where(mean[kept] > OUTLYING * usual, mean[kept] / usual, 1.0)
    size = float(np.sqrt(stored[kept].sum() / max(1, values.shape[0])))
    return NumberRules("counts", names, tuple(kept.tolist()), (0.0,) * len(kept), tuple(scale.tolist()), size=size)


def _scale_counts(rules: NumberRules, values: Matrix) -> csr_array:
    counts = csr_array(_without_missing(values)[:, list(rules.kept)] / np.asarray(rules.scale))
    norm = np.sqrt(counts.multiply(counts).sum(1))
    factor = np.divide(rules.size, norm, out=np.zeros_like(norm), where=norm > 0)
    return csr_array(counts.multiply(factor[:, None]))


def _without_missing(values: Matrix) -> csr_array:
    """Return counts as a sparse matrix in which a missing value is 0."""
    counts = csr_array(np.nan_to_num(values)) if isinstance(values, np.ndarray) else csr_array(values)
    counts.sum_duplicates()
    counts.eliminate_zeros()
    return counts


def _learn_measurements(names: tuple[str, ...], values: Array) -> NumberRules:
    kept, centre, scale, flagged = [], [], [], []
    for c in range(len(names)):
        present = values[np.isfinite(values[:, c]), c]
        if 0 < len(present) < values.shape[0]:
            flagged.append(c)
        if len(present) == 0 or present.min() == present.max():
            continue
        low, middle, high = np.quantile(present, (0.25, 0.5, 0.75))
        spread = (high - low) / 1.349 or present.std()
        kept.append(c)
        centre.append(float(middle))
        scale.append(float(spread))
    return NumberRules("measurements", names, tuple(kept), tuple(centre), tuple(scale), tuple(flagged))


def _scale_measurements(rules: NumberRules, values: Array) -> Array:
    scaled = (values[:, list(rules.kept)] - np.asarray(rules.centre)) / np.asarray(rules.scale)
    missing = ~np.isfinite(values[:, list(rules.flagged)])
    return np.hstack((np.nan_to_num(scaled.clip(-CLIP, CLIP)), missing.astype(np.float64)))


def _word_rule(name: str, column: Words) -> WordRule:
    """Return the most frequent words of a column; none for a single word or for words that hardly repeat."""
    counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.names))
    used = int((counts > 0).sum())
    if used + bool((column.codes < 0).any()) < 2 or used > max(2, len(column.codes) / 2):
        return WordRule(name, ())
    frequent = [c for c in np.argsort(-counts, kind="stable")[:CATEGORIES] if counts[c]]
    return WordRule(name, tuple(column.names[c] for c in sorted(frequent)))


def _one_hot(rule: WordRule, column: Column) -> Array:
    """Return (n, words) of 0 and 1; numbers in a column that was learned as words are read as words."""
    words = to_words(column)
    place = {word: c for c, word in enumerate(rule.words)}
    table = np.array([place.get(name, -1) for name in words.names] + [-1])  # the last entry is for missing words
    one_hot: Array = (table[words.codes][:, None] == np.arange(len(rule.words))).astype(np.float64)
    return one_hot


def _identity(nodes: Sequence[str], ids: Sequence[str]) -> csr_array:
    """Return (ids, nodes), 1 where an id is that of a node."""
    place = {node: c for c, node in enumerate(nodes)}
    column = np.array([place.get(each, -1) for each in ids])
    rows = np.flatnonzero(column >= 0)
    return csr_array((np.ones(len(rows)), (rows, column[rows])), shape=(len(ids), len(nodes)))
