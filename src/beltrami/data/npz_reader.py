"""Read the arrays of npz archives; sizes are checked before memory is allocated, and nothing is unpickled."""

import math
import zipfile
import zlib
from collections.abc import Collection
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
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}  # by version of the format


def read_npz_arrays(path: Path, *, names: Collection[str] | None = None) -> Arrays:
    """Return the arrays of these names, None for all; one of ``UNREADABLE`` says what is wrong with the file.

    Members that are no arrays of plain values, such as arrays of Python objects, are left out.
    """
    with zipfile.ZipFile(path) as archive:
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        wanted = {name: members[name] for name in (members if names is None else names)}
        limits.check_members(wanted.values(), what="it")
        arrays = {}
        for name, member in wanted.items():
            with archive.open(member) as file:
                array = _read_array(file, name, member.file_size)
            if array is not None:
                arrays[name] = array
    return arrays


def _read_array(file: IO[bytes], name: str, size: int) -> NDArray[Any] | None:
    """Return the array in a file of ``size`` bytes; its header must state that size."""
    if size < npy.MAGIC_LEN or (version := npy.read_magic(file)) not in HEADERS:
        return None
    shape, fortran, dtype = HEADERS[version](file)
    if dtype.hasobject:
        return None
    left, needed = size - file.tell(), math.prod(shape) * dtype.itemsize
    if needed != left or min(shape, default=0) < 0:
        raise DataError(f"the header of {name!r} states {needed} bytes of values, and {left} are there")
    content = bytearray(file.read(needed))  # writable
    if len(content) < needed:
        raise EOFError(f"{name!r} ends after {len(content)} of {needed} bytes")
    flat = np.frombuffer(content, dtype) if content else np.empty(0, dtype)
    return flat.reshape(shape, order="F" if fortran else "C")
