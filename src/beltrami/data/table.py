"""Tables of named columns: numbers, or words coded by a dictionary, with the line of every row."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
"""The words, in lower case, that stand for a missing value."""

UNNAMED = "column 1"
"""The name given to a first column without one: the index of a pandas frame. It may be the id, never a feature."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """A numeric column: values (rows,), float64, NaN where the value is missing."""

    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: NDArray[Any]) -> "Numbers":
        """Return the column restricted to row numbers or to a mask of rows."""
        return Numbers(self.values[rows])


@dataclass(frozen=True, eq=False)
class Words:
    """A column of words: row r holds ``names[codes[r]]``, nothing where ``codes[r]`` is -1; the names are distinct."""

    codes: NDArray[np.int64]
    names: list[str]

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: NDArray[Any]) -> "Words":
        """Return the column restricted to row numbers or to a mask of rows."""
        return Words(self.codes[rows], self.names)


Column: TypeAlias = Numbers | Words


@dataclass(frozen=True, eq=False)
class DataTable:
    """Named columns of one length, with the place of each row for messages.

    Args:
        columns: the columns by name, in the order of the file.
        source: the name of the file.
        lines: the line of the file on which each row starts, or the number of the row, from 1; (rows,).
        unit: ``line`` or ``row``: what ``lines`` counts.
    """

    columns: dict[str, Column]
    source: str
    lines: NDArray[np.int64]
    unit: str = "row"

    def __len__(self) -> int:
        return len(self.lines)

    def where(self, row: int) -> str:
        """Return the place of a row as a message names it."""
        return f"{self.source}, {self.unit} {self.lines[row]}"

    def take(self, rows: NDArray[Any]) -> "DataTable":
        """Return the table restricted to row numbers or to a mask of rows."""
        columns: dict[str, Column] = {name: column.take(rows) for name, column in self.columns.items()}
        return DataTable(columns, self.source, self.lines[rows], self.unit)


class WordCodes(dict[str, int]):
    """The codes of the words seen so far; white space around a word is removed, and a missing value has code -1."""

    def __init__(self, missing: Collection[str] = MISSING) -> None:
        super().__init__()
        self.names: list[str] = []
        self.missing = missing

    def __missing__(self, raw: str) -> int:
        text = raw.strip()
        if text.lower() in self.missing:
            code = -1
        elif text != raw:
            code = self[text]
        else:
            code = len(self.names)
            self.names.append(text)
        self[raw] = code
        return code

    def encode(self, values: Sequence[str]) -> NDArray[np.int64]:
        return np.fromiter(map(self.__getitem__, values), np.int64, len(values))


def floats(values: Sequence[str]) -> NDArray[np.float64] | None:
    """Return the words as numbers, NaN where one is missing; None if a word is neither a number nor missing."""
    try:
        found = np.fromiter(map(float, values), np.float64, len(values))
    except ValueError:
        try:
            known = (float("nan") if value.strip().lower() in MISSING else float(value) for value in values)
            found = np.fromiter(known, np.float64, len(values))
        except ValueError:
            return None
    return None if "_" in "".join(values) else found  # Python reads 1_000 as a number


def as_numbers(words: Words) -> Numbers | None:
    """Return a column of words as numbers, or None if one of the words in use is no number."""
    used = np.unique(words.codes[words.codes >= 0])
    values = floats([words.names[code] for code in used])
    if values is None:
        return None
    table = np.full(len(words.names) + 1, np.nan)  # the last entry is found by code -1
    table[used] = values
    return Numbers(table[words.codes])


def to_words(column: Column) -> Words:
    """Return any column as words; the words of numbers are sorted by value."""
    if isinstance(column, Words):
        return column
    present = ~np.isnan(column.values)
    found, codes = np.unique(column.values[present], return_inverse=True)
    spread = np.full(len(column), -1, dtype=np.int64)
    spread[present] = codes
    return Words(spread, [str(int(v)) if np.isfinite(v) and v == np.floor(v) else repr(float(v)) for v in found])


def as_words(column: Column) -> Column:
    """Return a column of integers as words; words, and numbers with a fractional part, are returned unchanged."""
    if isinstance(column, Words):
        return column
    present = column.values[~np.isnan(column.values)]
    return to_words(column) if np.all(np.isfinite(present) & (present == np.floor(present))) else column


def sort_names(words: Words) -> Words:
    """Return the same column with the names in use, sorted: by value where all are numbers, else by letters."""
    used = np.unique(words.codes[words.codes >= 0])
    names = [words.names[code] for code in used]
    values = floats(names)
    if values is None:
        order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
    else:
        order = np.lexsort((np.array(names, dtype=str), values))
    rank = np.full(len(words.names) + 1, -1, dtype=np.int64)
    rank[used[order]] = np.arange(len(used))
    return Words(rank[words.codes], [names[k] for k in order])


def column_name(name: str, position: int) -> str:
    """Return the name of a column, ``column k`` (k from 1) if it has none; an index that pandas wrote has none."""
    name = name.strip()
    return UNNAMED if name in ("__index_level_0__", "Unnamed: 0") else name or f"column {position + 1}"
