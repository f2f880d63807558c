"""Write columns to a CSV, TSV or Parquet file, in chunks of rows."""

import csv
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy

from beltrami.data.file import atomic_file
from beltrami.errors import DataError

Array = numpy.ndarray[Any, Any]
Values = list[str] | Array
Chunks = Iterable[dict[str, Values]]


def write_table(path: Path, chunks: Chunks) -> None:
    """Write chunks of rows with the same columns to a .csv, .tsv or .parquet file, completely or not at all.

    In text files, which are UTF-8, numbers have the fewest digits that read back as the same number, NaN is an empty
    field, and truth values are ``true`` and ``false``. In Parquet files NaN is null.
    """
    check_table_path(path)
    with atomic_file(path) as file:
        WRITERS[path.suffix.lower()](file, chunks)


def check_table_path(path: Path) -> None:
    """Refuse a file that predictions cannot be written to, before they are computed."""
    if path.suffix.lower() not in WRITERS:
        raise ValueError(f"predictions cannot be written to {path}: its extension must be {', '.join(WRITERS)}.")
    if path.suffix.lower() == ".parquet":
        _pyarrow("pyarrow")


def to_lines(rows: Iterable[Iterable[str]], *, delimiter: str) -> list[str]:
    """Return rows as lines of a CSV file, without line ends; fields are quoted where they must be."""
    lines = _Lines()
    # The csv module quotes a line break only if its line end contains that character.
    csv.writer(lines, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    return [line[:-2] for line in lines]


class _Lines(list[str]):
    """A list to which the csv module writes, one element per row."""

    write = list.append


def _write_text(file: IO[bytes], chunks: Chunks, *, delimiter: str) -> None:
    for number, columns in enumerate(chunks):
        rows = zip(*map(_texts, columns.values()), strict=True)
        lines = to_lines(rows if number else chain([columns], rows), delimiter=delimiter)
        file.writelines(f"{line}\n".encode() for line in lines)


def _write_parquet(file: IO[bytes], chunks: Chunks) -> None:
    arrow, parquet, writer = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet"), None
    for columns in chunks:
        arrays = [
            arrow.array(each, arrow.string()) if isinstance(each, list) else arrow.array(each, from_pandas=True)
            for each in columns.values()
        ]
        table = arrow.table(arrays, names=list(columns))
        writer = writer or parquet.ParquetWriter(file, table.schema)
        writer.write_table(table)
    if writer:
        writer.close()


WRITERS: dict[str, Callable[[IO[bytes], Chunks], None]] = {
    ".csv": partial(_write_text, delimiter=","),
    ".tsv": partial(_write_text, delimiter="\t"),
    ".parquet": _write_parquet,
}


def _pyarrow(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise DataError("a .parquet file needs pyarrow: `pip install 'beltrami[table]'`.") from None


def _texts(values: Values) -> list[str]:
    """Return the fields of a column: numpy gives numbers the fewest digits that read back as the same number."""
    if isinstance(values, list):
        return values
    texts: list[str] = values.astype(str).tolist()
    if values.dtype == bool:
        return [text.lower() for text in texts]
    return ["" if text == "nan" else text for text in texts]
