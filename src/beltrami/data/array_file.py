"""Arrays in files, read by memory maps: npy and safetensors directly, Parquet after one conversion to npy."""

import json
import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike

from beltrami.data.file import TEMPORARY, cache_folder, file_digest
from beltrami.errors import DataError
from beltrami.file_limits import SAFETENSORS_HEADER_BYTES
from beltrami.memory import in_bytes

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]  # NDArray has no origin to check arguments by in numpy 2.5

FORMATS = (".npy", ".safetensors", ".parquet")
SAFETENSORS_TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "?",
}


def find_array(folder: Path, name: str) -> Path | None:
    """Return the file ``name.npy``, ``name.safetensors`` or ``name.parquet`` of a folder, or None; two are refused."""
    found = [path for suffix in FORMATS if (path := folder / f"{name}{suffix}").exists()]
    if len(found) > 1:
        raise DataError(f"{folder} holds {' and '.join(path.name for path in found)}: keep one of them.")
    return found[0] if found else None


def open_array(path: Path) -> Array:
    """Return the array in a file as a read-only memory map.

    A safetensors file must hold one tensor. A Parquet file must hold numeric columns, or one column of lists of one
    length; it is converted to npy in the cache folder when it is first opened, in row groups.
    """
    readers = {".npy": _open_npy, ".safetensors": _open_safetensors, ".parquet": _open_parquet}
    if path.suffix not in readers:
        raise DataError(f"{path} is no array file: its name must end in {', '.join(FORMATS)}.")
    try:
        return readers[path.suffix](path)
    except FileNotFoundError:
        raise DataError(f"there is no array file at {path}: check the name.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror or error}): check the file.") from error


@contextmanager
def new_array(path: Path, *, shape: tuple[int, ...], dtype: DTypeLike) -> Iterator[Array]:
    """Yield a writable memory map of zeros; move its file to ``path`` (npy) if the block succeeds, else delete it."""
    with new_array_file(path, shape=shape, dtype=dtype) as file:
        file.flush()
        array = npy.open_memmap(file.name, mode="r+")
        yield array
        array.flush()


def zeros_file(path: Path, *, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Return a writable memory map of zeros in a new file, such as one of a scratch folder."""
    with new_array(path, shape=shape, dtype=dtype) as array:
        return array


@contextmanager
def new_array_file(path: Path, *, shape: tuple[int, ...], dtype: DTypeLike) -> Iterator[IO[bytes]]:
    """Yield a file to which the values of an array are written in order; move it to ``path`` (npy) if the block
    succeeds, else delete it.

    Unlike the pages of a memory map, written values take no memory of the process. The space on the disk is reserved
    first, so that a full disk is an error here and not a crash while writing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    number = np.dtype(dtype)
    size = math.prod(shape) * number.itemsize
    header = {"descr": npy.dtype_to_descr(number), "fortran_order": False, "shape": shape}
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=TEMPORARY)
    try:
        with open(name, "r+b") as file:
            os.close(handle)
            npy.write_array_header_1_0(file, header)
            try:
                os.posix_fallocate(file.fileno(), 0, file.tell() + size)
            except OSError as error:
                why = f"{in_bytes(size)} cannot be written to {path} ({error.strerror})"
                raise OSError(f"{why}: make room, or choose another folder.") from error
            yield file
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _open_npy(path: Path) -> Array:
    try:
        array = npy.open_memmap(path, mode="r")
    except (ValueError, EOFError) as error:
        why = str(error).rstrip(".")
        raise DataError(
            f"{path} is no npy file of numbers, or it is damaged ({why}): write it again with `numpy.save`."
        ) from None
    if array.dtype.kind not in "fiub":
        raise DataError(f"{path} must hold numbers; it holds {array.dtype}.")
    if not array.flags.c_contiguous:
        raise DataError(f"{path} is stored by columns: save it again with `np.save(path, np.ascontiguousarray(x))`.")
    return array


def _open_safetensors(path: Path) -> Array:
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, SAFETENSORS_HEADER_BYTES):
            raise DataError(f"{path} is no safetensors file, or it is damaged: its header has {length} bytes.")
        try:
            header = json.loads(file.read(length))
            tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
            (entry,) = tensors.values()
            dtype, shape = np.dtype(SAFETENSORS_TYPES[entry["dtype"]]), tuple(int(each) for each in entry["shape"])
            start, stop = (int(each) for each in entry["data_offsets"])
        except (ValueError, KeyError, TypeError, AttributeError):
            types = ", ".join(SAFETENSORS_TYPES)
            raise DataError(f"{path} must hold one tensor, of type {types}; it does not, or it is damaged.") from None
    if min(shape, default=0) < 0 or stop - start != int(np.prod(shape)) * dtype.itemsize or 8 + length + stop > size:
        raise DataError(f"{path} is damaged: its tensor of shape {shape} does not fit into its {size} bytes.")
    return np.memmap(path, dtype=dtype, mode="r", offset=8 + length + start, shape=shape)


def _open_parquet(path: Path) -> Array:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise DataError(f"{path} needs pyarrow: `pip install 'beltrami[table]'`.") from None
    copy = cache_folder() / "arrays" / f"{file_digest(path)}.npy"
    if copy.exists():
        return _open_npy(copy)
    try:
        with pq.ParquetFile(path, memory_map=True) as file:
            first = _matrix(next(file.iter_batches(batch_size=1)), path)
            with new_array(copy, shape=(file.metadata.num_rows, *first.shape[1:]), dtype=first.dtype) as out:
                row = 0
                for batch in file.iter_batches():
                    out[row : row + batch.num_rows] = _matrix(batch, path)
                    row += batch.num_rows
    except StopIteration:
        raise DataError(f"{path} has no rows: write it again.") from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise DataError(f"{path} is no table of numbers, or it is damaged ({error}).") from None
    return _open_npy(copy)


def _matrix(batch: Any, path: Path) -> Array:
    """Return the rows of a batch: (rows, columns), (rows, length of the lists), or (rows,) for one column."""
    import pyarrow as pa

    columns = batch.columns
    if any(column.null_count for column in columns):
        raise DataError(f"{path} has empty cells: fill them first.")
    if len(columns) == 1 and pa.types.is_nested(columns[0].type):
        return np.stack(columns[0].to_numpy(zero_copy_only=False))
    arrays = [column.to_numpy(zero_copy_only=False) for column in columns]
    if any(array.dtype.kind not in "fiub" for array in arrays):
        raise DataError(f"{path} has columns that are no numbers: leave them out.")
    return arrays[0] if len(arrays) == 1 else np.stack(arrays, axis=1)
