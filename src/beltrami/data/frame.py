"""Tables from data frames (pandas, polars, pyarrow; through narwhals), Parquet files and lists of Python values."""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from beltrami import file_limits as limits
from beltrami.data.table import MISSING, UNNAMED, Column, DataTable, Numbers, WordCodes, Words, as_words, column_name
from beltrami.errors import DataError

if TYPE_CHECKING:
    import narwhals as nw

CHUNK_ROWS = 65536


def frame_header(frame: Any, *, source: str) -> list[str]:
    """Return the names of the columns of a frame, with a pandas index that is not 0, 1, 2, ... as the first."""
    return list(_named_columns(frame, source=source))


def table_from_frame(
    frame: Any,
    *,
    source: str = "the frame",
    words: Collection[str] = (),
    ids: Collection[str] = (),
    only: Collection[str] | None = None,
) -> DataTable:
    """Return the table of a pandas, polars or pyarrow frame.

    Numeric columns become numbers. Text, categories, booleans (``true``, ``false``) and dates become words.

    Args:
        source: the name of the table in messages.
        words: integer columns to keep as words; numbers with a fractional part stay numbers.
        ids: columns to keep as words in which only an empty value is missing.
        only: the columns to read; None reads all.
    """
    columns = {
        name: _column(series, name=name, source=source, words=name in words, ids=name in ids)
        for name, series in _named_columns(frame, source=source).items()
        if only is None or name in only
    }
    rows = len(next(iter(columns.values()))) if columns else 0
    return DataTable(columns, source, np.arange(1, rows + 1))


def read_parquet_header(path: Path) -> list[str]:
    """Return the names of the columns of a Parquet file."""
    with _parquet_file(path) as file:
        return [column_name(name, k) for k, name in enumerate(file.schema_arrow.names)]


def read_parquet(
    path: Path, *, words: Collection[str] = (), ids: Collection[str] = (), only: Collection[str] | None = None
) -> DataTable:
    """Read a Parquet file with pyarrow; the arguments are those of ``table_from_frame``."""
    with _parquet_file(path) as file:
        stored = file.schema_arrow.names
        kept = [name for k, name in enumerate(stored) if only is None or column_name(name, k) in only]
        facts = file.metadata
        stated = sum(facts.row_group(k).total_byte_size for k in range(facts.num_row_groups))
        limits.check_memory(max(stated, 8 * facts.num_rows * len(kept)), what="it")
        frame = file.read(columns=kept, use_threads=False)
        frame.validate(full=True)  # of damaged texts, which would be found one by one later
    return table_from_frame(frame, source=path.name, words=words, ids=ids)


def parquet_chunks(
    path: Path, *, words: Collection[str] = (), ids: Collection[str] = (), only: Collection[str] | None = None
) -> Iterator[DataTable]:
    """Yield the rows of a Parquet file in chunks; the arguments are those of ``table_from_frame``."""
    with _parquet_file(path) as file:
        import pyarrow

        kept = [name for k, name in enumerate(file.schema_arrow.names) if only is None or column_name(name, k) in only]
        rows = 0
        for batch in file.iter_batches(batch_size=CHUNK_ROWS, columns=kept, use_threads=False):
            batch.validate(full=True)
            frame = pyarrow.Table.from_batches([batch])
            table = table_from_frame(frame, source=path.name, words=words, ids=ids)
            yield DataTable(table.columns, table.source, table.lines + rows, table.unit)
            rows += len(table)


def column_of(values: Sequence[Any]) -> Column:
    """Return Python values as a column: numbers if all present ones are numbers, else words; None and NaN are missing.

    Booleans become the words ``true`` and ``false``; other objects become the text that ``str`` gives.
    """
    if all(value is None or _is_number(value) for value in values):
        return Numbers(np.array([math.nan if value is None else float(value) for value in values]))
    encoder = WordCodes()
    return Words(encoder.encode([_text(value) for value in values]), encoder.names)


def _column(series: "nw.Series[Any]", *, name: str, source: str, words: bool, ids: bool) -> Column:
    import narwhals as nw

    if isinstance(series.dtype, (nw.List, nw.Array, nw.Struct, nw.Binary)):
        raise DataError(f"{source}: the column {name!r} holds {series.dtype}: give one column for each number.")
    if series.dtype.is_integer() and (words or ids):  # not by way of float64, which holds 53 bits only
        return _encode(series, str)
    if series.dtype.is_numeric():
        raw = series if series.dtype.is_integer() else series.cast(nw.Float64)
        numbers = Numbers(np.array(raw.to_numpy(), dtype=np.float64))
        return as_words(numbers) if words or ids else numbers
    if series.dtype == nw.Object:
        return column_of([None if null else value for value, null in zip(series, series.is_null(), strict=True)])
    return _encode(series, _text, missing={""} if ids else MISSING)


def _encode(series: "nw.Series[Any]", text: Callable[[Any], str], missing: Collection[str] = MISSING) -> Words:
    """Return a series as words, in chunks of rows, so that few Python objects exist at a time."""
    encoder, codes = WordCodes(missing), [np.empty(0, np.int64)]
    for start in range(0, len(series), CHUNK_ROWS):
        part = series[start : start + CHUNK_ROWS]
        values = zip(part.to_list(), part.is_null().to_list(), strict=True)
        codes.append(encoder.encode(["" if null or value != value else text(value) for value, null in values]))
    return Words(np.concatenate(codes), encoder.names)


def _named_columns(frame: Any, *, source: str) -> "dict[str, nw.Series[Any]]":
    try:
        import narwhals as nw
    except ImportError:
        raise DataError(f"reading {source} needs narwhals: `pip install 'beltrami[table]'`.") from None
    try:
        table: nw.DataFrame[Any] = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise ValueError(
            f"a graph is read from a path, a networkx graph, a PyG `Data` or a pandas, polars or pyarrow frame; "
            f"got {type(frame).__name__} for {source}."
        ) from None
    found = {column_name(str(name), k): table[name] for k, name in enumerate(table.columns)}
    index = nw.maybe_get_index(table)
    if index is None or type(index).__name__ == "RangeIndex":
        return found
    name = UNNAMED if index.name is None else str(index.name)
    return {name: nw.from_native(index.to_series(), series_only=True), **found}


@contextmanager
def _parquet_file(path: Path) -> Iterator[Any]:
    """Open a Parquet file; what pyarrow finds wrong with it is a :class:`DataError`."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError(f"reading {path} needs pyarrow: `pip install 'beltrami[table]'`.") from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            limits.check_columns(file.metadata.num_columns, what="it")
            yield file
    except (OSError, ValueError, pyarrow.ArrowException, DataError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path} cannot be read as Parquet ({reason}): write it again.") from None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(value).lower() if isinstance(value, (bool, np.bool_)) else str(value)
