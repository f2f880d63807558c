"""Read the arrays of npz archives, whole or in chunks; sizes are checked first, and nothing is unpickled."""

import math
import zipfile
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from beltrami import file_limits as limits
from beltrami.errors import DataError

Arrays = dict[str, NDArray[Any]]

# The errors of numpy, zipfile and gzip on files that are truncated, altered, or of another kind.
UNREADABLE = (
    DataError,
    OSError,
    EOFError,
    ValueError,
    TypeError,
    LookupError,
    RuntimeError,
    SyntaxError,
    TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
PIECE = 1 << 20  # bytes that are decompressed at once
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}  # by version of the format


def read_npz_arrays(path: Path, *, names: Collection[str] | None = None) -> Arrays:
    """Return the arrays of these names, None for all; one of ``UNREADABLE`` says what is wrong with the file.

    Members that are no arrays of plain values, such as arrays of Python objects, are left out.
    """
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for name, member in _members(archive, names, memory=True).items():
            with archive.open(member) as file:
                header = _read_header(file, name, member.file_size)
                if header is not None:
                    flat = _read_values(file, name, header.dtype, math.prod(header.shape))
                    arrays[name] = flat.reshape(header.shape, order="F" if header.fortran else "C")
    return arrays


@dataclass(frozen=True)
class ArchivedArray:
    """An array of numbers in an npz archive that is read in chunks, so that it need not fit into memory."""

    path: Path
    name: str
    shape: tuple[int, ...]
    dtype: "np.dtype[Any]"

    def chunks(self, start: int, stop: int, *, size: int) -> Iterator[NDArray[Any]]:
        """Yield the values from ``start`` to ``stop`` of the flat array, ``size`` at a time.

        Values before ``start`` are read too, not skipped by a seek: a deflated member has no other way, and zipfile
        compares the checksum of a member only at its end and only if all of it was read.
        """
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(self._member(archive)) as file:
                _read_header(file, self.name, self._member(archive).file_size)
                _skip(file, start * self.dtype.itemsize)
                for first in range(start, stop, size):
                    yield _read_values(file, self.name, self.dtype, min(size, stop - first))
        except UNREADABLE as error:
            raise _damaged(self.path, error) from error

    def _member(self, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
        return _members(archive, (self.name,), memory=False)[self.name]


def open_npz_arrays(path: Path, *, names: Collection[str]) -> dict[str, ArchivedArray]:
    """Return arrays of these names to be read in chunks.

    The limits on archives hold but that on the memory: members may not expand more than deflate can, may not have more
    than ``ARCHIVE_BYTES`` together, and must have the size that the header of their array states.
    """
    found = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name, member in _members(archive, names, memory=False).items():
                with archive.open(member) as file:
                    header = _read_header(file, name, member.file_size)
                if header is None:
                    raise DataError(f"{name!r} is no array of plain values, and pickled objects are not read")
                if header.fortran:
                    raise DataError(f"{name!r} is stored by columns: save it as `np.ascontiguousarray({name})`")
                found[name] = ArchivedArray(path, name, header.shape, header.dtype)
    except FileNotFoundError:
        raise DataError(f"there is no archive at {path}.") from None
    except UNREADABLE as error:
        raise _damaged(path, error) from error
    return found


@dataclass(frozen=True)
class _Header:
    """What an array's header states."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: "np.dtype[Any]"


def _members(archive: zipfile.ZipFile, names: Collection[str] | None, *, memory: bool) -> dict[str, zipfile.ZipInfo]:
    """Return the members of these names, None for all, within the limits."""
    members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
    missing = [name for name in names or () if name not in members]
    if missing:
        raise DataError(f"it has no array {missing[0]!r}")
    wanted = {name: members[name] for name in (members if names is None else names)}
    limits.check_members(wanted.values(), what="it", memory=memory)
    return wanted


def _read_header(file: IO[bytes], name: str, size: int) -> _Header | None:
    """Return the header of the array in a file of ``size`` bytes, which it must state; None for no plain values."""
    if size < npy.MAGIC_LEN or (version := npy.read_magic(file)) not in HEADERS:
        return None
    shape, fortran, dtype = HEADERS[version](file)
    if dtype.hasobject:
        return None
    left, needed = size - file.tell(), math.prod(shape) * dtype.itemsize
    if needed != left or min(shape, default=0) < 0:
        raise DataError(f"the header of {name!r} states {needed} bytes of values, and {left} are there")
    return _Header(shape, fortran, dtype)


def _read_values(file: IO[bytes], name: str, dtype: "np.dtype[Any]", count: int) -> NDArray[Any]:
    """Return the next values of a file, in a writable array."""
    content, needed = bytearray(), count * dtype.itemsize
    while len(content) < needed and (piece := file.read(min(PIECE, needed - len(content)))):
        content += piece
    if len(content) < needed:
        raise EOFError(f"{name!r} ends after {len(content)} of {needed} bytes")
    return np.frombuffer(content, dtype) if content else np.empty(0, dtype)


def _skip(file: IO[bytes], count: int) -> None:
    while count and (piece := file.read(min(PIECE, count))):
        count -= len(piece)


def _damaged(path: Path, error: Exception) -> DataError:
    reason = str(error).rstrip(".") or type(error).__name__
    return DataError(f"{path} is damaged or of another kind ({reason}): get it again, or correct it.")
