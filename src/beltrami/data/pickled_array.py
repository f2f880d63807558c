"""Values of a pickle: arrays, sparse matrices and dictionaries, made from their names and arguments."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beltrami import file_limits as limits
from beltrami.errors import DataError

NUMBERS = frozenset({"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"})
"""The types of array elements that are read."""

ARRAY, ARRAY_CLASS, BUFFER, DTYPE = "array", "array class", "array of a buffer", "dtype"
ROWS, DICTIONARY, LIST, ENCODE, EMPTY = "sparse rows", "dictionary", "list", "encode", "no bytes"
NAMES = {
    ("numpy", "ndarray"): ARRAY_CLASS,
    ("numpy", "dtype"): DTYPE,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): ARRAY for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): BUFFER for core in ("core", "_core")},
    **{(f"scipy.sparse.{module}", "csr_matrix"): ROWS for module in ("csr", "_csr")},
    ("collections", "defaultdict"): DICTIONARY,
    **{(module, "list"): LIST for module in ("__builtin__", "builtins")},
    ("_codecs", "encode"): ENCODE,
    ("__builtin__", "bytes"): EMPTY,
}
"""The only names that may occur in a pickle, in all versions of Python, numpy and scipy, and what each stands for."""


@dataclass(frozen=True)
class Name:
    """A name in a pickle: what it stands for."""

    meaning: str


@dataclass
class PickledDtype:
    """A type of numbers, whose byte order comes later than its name."""

    name: str
    order: str = "="


class PickledArray:
    """An array whose content comes later than the first reference to it."""

    content: NDArray[Any] | None = None

    def build(self, state: Any) -> None:
        _, shape, dtype, fortran, buffer = state
        self.content = array_of(buffer, dtype, shape, fortran=bool(fortran))


class SparseRows:
    """The parts of a ``scipy.sparse.csr_matrix`` of any version; None until their content comes."""

    content: tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None = None  # data, indices, indptr
    shape = (0, 0)

    def build(self, state: Any) -> None:
        data, indices, indptr = (state[part] for part in ("data", "indices", "indptr"))
        if not all(isinstance(part, np.ndarray) and part.ndim == 1 for part in (data, indices, indptr)):
            raise DataError("it has a sparse matrix whose parts are no arrays")
        rows, columns = state["_shape"] if "_shape" in state else state["shape"]
        self.content, self.shape = (data, indices, indptr), (_size(rows), _size(columns))

    def dense(self) -> NDArray[np.float32]:
        """Return the matrix, checked."""
        from scipy.sparse import csr_array

        assert self.content is not None
        rows, columns = self.shape
        limits.check_memory(2 * 4 * rows * columns, what=f"a matrix of {rows} rows and {columns} columns")
        matrix = csr_array(self.content, shape=self.shape)
        matrix.check_format(full_check=True)  # entries outside of the matrix would be written outside of its memory
        return np.asarray(matrix.toarray(), dtype=np.float32)


def array_of(buffer: Any, dtype: Any, shape: Any, *, fortran: bool) -> NDArray[Any]:
    """Return a view of the bytes ``buffer``, whose length must be that of the shape; nothing is allocated."""
    if type(dtype) is not PickledDtype or dtype.name not in NUMBERS or dtype.order not in ("<", ">", "|", "="):
        raise DataError("it has an array of something else than numbers")
    if type(buffer) is not bytes:
        raise DataError("it has an array without bytes")
    kind = np.dtype(dtype.order + dtype.name)
    flat = np.frombuffer(buffer, kind) if buffer else np.empty(0, kind)
    return flat.reshape([_size(size) for size in shape], order="F" if fortran else "C")


def call(name: Any, arguments: Any) -> Any:
    """Return the value that the function of a name would return for these arguments, without calling it."""
    meaning = name.meaning if type(name) is Name and type(arguments) is tuple else ""
    if meaning == ARRAY:
        return PickledArray()
    if meaning == BUFFER:
        buffer, dtype, shape, order = arguments
        return array_of(buffer, dtype, shape, fortran=text_of(order) == "F")
    if meaning == DTYPE:
        return PickledDtype(text_of(arguments[0]))
    if meaning == DICTIONARY:
        return {}
    if meaning == ENCODE and text_of(arguments[1]) == "latin1":
        return text_of(arguments[0]).encode("latin1")
    if meaning == EMPTY and not arguments:
        return b""
    raise DataError("it calls something else than an array, a type of numbers or a dictionary")


def text_of(value: Any) -> str:
    """Return a text; those of Python 2 are bytes."""
    if type(value) not in (bytes, str):
        raise DataError("it has something else where a text is needed")
    return value if isinstance(value, str) else value.decode("latin1")


def _size(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise DataError("it has an array whose size is no whole number")
    return value
