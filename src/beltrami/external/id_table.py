"""The node number of every id of a graph, in files: ids are integers or words, and tables of them are sorted."""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beltrami.data.array_file import Array, zeros_file
from beltrami.data.table import Words
from beltrami.errors import DataError
from beltrami.external.record_sort import RecordSorter

SMALLEST, LARGEST = -(2**63), 2**63 - 1


class IdRange:
    """Facts about ids from a first pass: their number, whether all are integers, the smallest and the largest."""

    def __init__(self) -> None:
        self.count, self.integers, self.consecutive = 0, True, True
        self.low, self.high = LARGEST, SMALLEST

    def add(self, names: Sequence[str]) -> None:
        """Take note of ids, in the order of the nodes."""
        if self.integers and len(names):
            values = integer_ids(names)
            self.integers = values is not None
            if values is not None:
                self.low, self.high = min(self.low, int(values.min())), max(self.high, int(values.max()))
                expected = np.arange(self.count, self.count + len(names))
                self.consecutive = self.consecutive and bool((values == expected).all())
        self.count += len(names)


class IdTable:
    """Ids of nodes and their numbers, sorted in files.

    Integers are their own keys; if they are 0, 1, 2, ... in this order, no table is needed. Other ids have keys of 128
    bits from BLAKE2: two of 10^9 ids have the same key with a probability below 10^-20. A lookup of many ids reads the
    table in ascending order. Call :meth:`add` with all ids, then :meth:`finish`. ``first`` is the id of node 0.

    Args:
        found: the facts from a first pass over the same ids.
        scratch: a folder for the files.
        memory: the budget in bytes.
    """

    def __init__(self, found: IdRange, scratch: Path, *, memory: int) -> None:
        self.found, self.scratch = found, scratch
        self.direct = found.integers and found.consecutive
        self._files: dict[str, Array] = {}
        self._sorter: RecordSorter | None = None
        self._added, self.first = 0, ""
        if not self.direct:
            payload = [("node", np.int32)] if found.integers else [("check", np.uint64), ("node", np.int32)]
            high = found.high - found.low + 1 if found.integers else 2**64
            self._sorter = RecordSorter(scratch / "ids", high=max(1, high), payload=payload, memory=memory)

    def add(self, names: Sequence[str]) -> None:
        """Add the ids of the next nodes."""
        self.first = self.first or next(iter(names), "")
        if self._sorter is not None and len(names):
            nodes = np.arange(self._added, self._added + len(names), dtype=np.int32)
            self._sorter.add(**self._keys(names), node=nodes)
        self._added += len(names)

    def finish(self, *, source: str) -> None:
        """Write the table and refuse an id that occurs twice; ``source`` is the name of the table of nodes."""
        if self._sorter is None:
            return
        names = self._sorter.dtype.names or ()
        for name in names:
            place, dtype = self.scratch / f"id-{name}.npy", self._sorter.dtype[name]
            self._files[name] = zeros_file(place, shape=(self.found.count,), dtype=dtype)
        row, before = 0, np.empty(0, self._sorter.dtype)
        for records in self._sorter.blocks():
            _check_distinct(np.concatenate((before, records)), source)
            for name in names:
                self._files[name][row : row + len(records)] = records[name]
            row, before = row + len(records), records[-1:]

    def numbers(self, words: Words) -> NDArray[np.int64]:
        """Return the node number of each row of a column of ids, -1 if the id is missing or unknown."""
        return np.append(self.lookup(words.names), -1)[words.codes]

    def lookup(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Return the node numbers of ids, -1 for an unknown one."""
        numbers = np.full(len(names), -1, dtype=np.int64)
        if not self.found.integers:
            return self._search(self._keys(names)) if len(names) else numbers
        values = integer_ids(names)
        if values is None:
            parsed = [integer_ids([name]) for name in names]
            known = np.array([value is not None for value in parsed], dtype=bool)
            values = np.array([value[0] for value in parsed if value is not None], dtype=np.int64)
        else:
            known = np.ones(len(names), dtype=bool)
        inside = (values >= self.found.low) & (values <= self.found.high)
        known[known] = inside
        values = values[inside]
        numbers[known] = values if self.direct else self._search({"key": self._offset(values)})
        return numbers

    def _search(self, keys: dict[str, Array]) -> NDArray[np.int64]:
        order = np.argsort(keys["key"])
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.searchsorted(self._files["key"], keys["key"][order])
        numbers = np.full(len(order), -1, dtype=np.int64)
        for step in range(len(keys)):  # of words, two may share the first 64 bits of their keys
            here = np.minimum(place + step, self.found.count - 1)
            same = np.logical_and.reduce([self._files[name][here] == key for name, key in keys.items()])
            numbers = np.where(same, self._files["node"][here], numbers)
        return numbers

    def _keys(self, names: Sequence[str]) -> dict[str, Array]:
        if self.found.integers:
            values = integer_ids(names)
            assert values is not None
            return {"key": self._offset(values)}
        digests = b"".join(blake2b(name.encode(), digest_size=16).digest() for name in names)
        pairs = np.frombuffer(digests, dtype=np.uint64).reshape(-1, 2)
        return {"key": pairs[:, 0].copy(), "check": pairs[:, 1].copy()}

    def _offset(self, values: NDArray[np.int64]) -> Array:
        return values.astype(np.uint64) - np.uint64(self.found.low % 2**64)  # wraps around as intended


def integer_ids(names: Sequence[str]) -> NDArray[np.int64] | None:
    """Return ids as integers, None unless each is written as Python writes its integer and fits 64 bits.

    Ids are compared as words: 7 and 07 are different ids.
    """
    try:
        values = np.fromiter(map(int, names), np.int64, len(names))
    except (ValueError, OverflowError):
        return None
    return values if list(map(str, values.tolist())) == list(names) else None


def _check_distinct(records: Array, source: str) -> None:
    """Refuse sorted records if two have the same key."""
    names = [name for name in records.dtype.names or () if name != "node"]
    repeated = np.flatnonzero(np.logical_and.reduce([np.diff(records[name]) == 0 for name in names]))
    if len(repeated):
        first, second = sorted(int(records["node"][k]) for k in (repeated[0], repeated[0] + 1))
        raise DataError(
            f"{source}: the nodes {first + 1} and {second + 1}, counted from 1, have the same id: remove one of them, "
            "or name another column with `--id`."
        )
