"""Sort records by a key in bounded memory: buckets on the disk by ranges of keys, each sorted on its own."""

import errno
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from beltrami.data.array_file import Array

BUCKETS = 64
COPIES = 8  # arrays of the size of a bucket that exist while it is sorted, merged and written; measured: 7
LEAST_RECORDS = 16  # of a bucket in memory, however small the budget


class RecordSorter:
    """Records with keys from ``low`` to ``high - 1`` that are added in any order and read in ascending order.

    A record goes to the file of one of 64 ranges of keys. A file that is read is sorted in memory; one that is too
    large for the budget is distributed over narrower ranges first. Memory is O(budget), the disk holds every record
    once or twice. Records of equal keys keep no order.

    Args:
        scratch: a folder for the files; they are deleted as they are read.
        low, high: the range of keys, within 0 to 2^64.
        payload: names and types of the values of a record beside its ``key``.
        combine: merges records of equal keys in a sorted array; None keeps all.
        memory: the budget in bytes.
    """

    def __init__(
        self,
        scratch: Path,
        *,
        low: int = 0,
        high: int,
        payload: Sequence[tuple[str, DTypeLike]] = (),
        combine: Callable[[Array], Array] | None = None,
        memory: int,
    ) -> None:
        self.dtype = np.dtype([("key", np.uint64), *payload])
        self.scratch, self.low, self.high, self.payload, self.combine = scratch, low, high, payload, combine
        self.memory = memory
        self.limit = max(LEAST_RECORDS, memory // (COPIES * self.dtype.itemsize))
        steps = min(BUCKETS, high - low)
        self._bounds = [low + (high - low) * k // steps for k in range(steps + 1)]
        scratch.mkdir(parents=True, exist_ok=True)
        self._buckets = set[int]()

    def add(self, key: Array, **values: Array) -> None:
        """Add records: keys (r,), and an array (r,) for each value of the payload."""
        for start in range(0, len(key), self.limit):
            part = slice(start, start + self.limit)
            records = np.empty(len(key[part]), self.dtype)
            records["key"] = key[part]
            for name, value in values.items():
                records[name] = value[part]
            self._distribute(records)

    def blocks(self) -> Iterator[Array]:
        """Yield all records in ascending order of their keys, in arrays within the budget, and delete the files."""
        for bucket in sorted(self._buckets):
            yield from self._read(self._path(bucket), self._bounds[bucket], self._bounds[bucket + 1])

    def _distribute(self, records: Array) -> None:
        records = self._sorted(records)
        inner = np.array(self._bounds[1:-1], dtype=np.uint64)
        places = [0, *np.searchsorted(records["key"], inner), len(records)]
        for bucket, (start, stop) in enumerate(pairwise(places)):
            if stop > start:
                self._append(bucket, records[start:stop])

    def _append(self, bucket: int, records: Array) -> None:
        try:
            with self._path(bucket).open("ab") as file:
                file.write(records.tobytes())
            self._buckets.add(bucket)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            why = f"{self.scratch.parent} is full ({error.strerror})"
            raise OSError(f"{why}: make room, or choose another folder.") from error

    def _read(self, path: Path, low: int, high: int) -> Iterator[Array]:
        count = path.stat().st_size // self.dtype.itemsize
        if count <= self.limit:
            yield self._sorted(np.fromfile(path, self.dtype))
        elif high - low == 1:
            yield from self._equal(path)
        else:
            inner = RecordSorter(
                path.with_suffix(""),
                low=low,
                high=high,
                payload=self.payload,
                combine=self.combine,
                memory=self.memory,
            )
            for records in self._chunks(path):
                inner._distribute(records)
            path.unlink()
            yield from inner.blocks()
            inner.scratch.rmdir()
            return
        path.unlink()

    def _equal(self, path: Path) -> Iterator[Array]:
        """Yield the records of a file in which all keys are equal: merged to one array, or in chunks."""
        if self.combine is None:
            yield from self._chunks(path)
            return
        merged = np.empty(0, self.dtype)
        for records in self._chunks(path):
            merged = self.combine(np.concatenate((merged, records)))
        yield merged

    def _chunks(self, path: Path) -> Iterator[Array]:
        with path.open("rb") as file:
            while len(records := np.fromfile(file, self.dtype, self.limit)):
                yield records

    def _sorted(self, records: Array) -> Array:
        if not self.payload:
            records = np.sort(records.view(np.uint64)).view(self.dtype)
        else:
            records = records[np.argsort(records["key"])]
        return records if self.combine is None else self.combine(records)

    def _path(self, bucket: int) -> Path:
        return self.scratch / f"{bucket}.records"


def run_starts(values: Array) -> Array:
    """Return the places of the first of each run of equal values, in sorted unsigned integers (r,)."""
    return np.flatnonzero(np.diff(values, prepend=~values[:1]))
