"""Read tables from text files (CSV, TSV, edge lists) in chunks of rows, and from Parquet files."""

import csv
import gzip
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from beltrami import file_limits as limits
from beltrami.data.frame import parquet_chunks, read_parquet, read_parquet_header
from beltrami.data.table import Column, DataTable, Numbers, WordCodes, Words, column_name, floats
from beltrami.errors import DataError

if TYPE_CHECKING:
    from _csv import Reader

SPACED = (".txt", ".edgelist", ".edges")
"""Extensions of text tables that may be separated by spaces and start with comments (# or %)."""

TEXT = (".csv", ".tsv", ".tab", *SPACED)
PACKED = ".gz"
"""The further extension of a text table that is compressed by gzip."""

PARQUET = (".parquet", ".pq")
CHUNK_FIELDS = 2**16


def read_header(path: Path) -> list[str]:
    """Return the names of the columns of a table file; a column without a name is called ``column k``, from 1."""
    _check_extension(path)
    if extension(path) in PARQUET:
        return read_parquet_header(path)
    with _open(path) as (reader, _):
        return _header(path, reader)


def read_table(
    path: Path,
    *,
    words: Collection[str] = (),
    ids: Collection[str] = (),
    only: Collection[str] | None = None,
    names: Sequence[str] | None = None,
) -> DataTable:
    """Read a table: Parquet, or text in UTF-8 separated by comma, semicolon, tab or, in edge lists, spaces.

    A column of a text file is numeric if every present value is a number. A column whose first word comes after the
    first chunk of rows is read a second time, so that its words are as in the file.

    Args:
        words: columns to keep as words, whatever they hold.
        ids: columns to keep as words in which only an empty field is missing; they share one list of names.
        only: the columns to read; None reads all.
        names: the names of the columns of a text file that has no header line.
    """
    _check_extension(path)
    if extension(path) in PARQUET:
        return read_parquet(path, words=words, ids=ids, only=only)
    header = list(names) if names is not None else read_header(path)
    kept = [name for name in header if only is None or name in only]
    shared = WordCodes({""})
    builders = {name: _Builder(shared if name in ids else WordCodes() if name in words else None) for name in kept}
    lines = _fill(path, header, builders, has_header=names is None)
    late = {name: _Builder(WordCodes()) for name, builder in builders.items() if builder.late}
    if late:
        _fill(path, header, late, has_header=names is None)
    columns = {name: late.get(name, builder).column() for name, builder in builders.items()}
    return DataTable(columns, path.name, lines, "line")


def table_chunks(
    path: Path,
    *,
    words: Collection[str] = (),
    ids: Collection[str] = (),
    only: Collection[str] | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[DataTable]:
    """Yield the rows of a table in chunks, in the memory of one of them; the arguments are those of ``read_table``.

    The codes of words count for their chunk. A column without words in a chunk is numeric there.
    """
    _check_extension(path)
    if extension(path) in PARQUET:
        yield from parquet_chunks(path, words=words, ids=ids, only=only)
        return
    header = list(names) if names is not None else read_header(path)
    with _open(path) as (reader, skipped):
        if names is None:
            next(reader)
        for starts, rows in _chunks(path, reader, len(header), skipped):
            shared, columns = WordCodes({""}), dict[str, Column]()
            for name, fields in zip(header, zip(*rows, strict=True), strict=True):
                if only is None or name in only:
                    builder = _Builder(shared if name in ids else WordCodes() if name in words else None)
                    builder.add(fields)
                    columns[name] = builder.column()
            yield DataTable(columns, path.name, np.array(starts, dtype=np.int64), "line")


def first_row(path: Path) -> list[str]:
    """Return the fields of the first line of a text table."""
    _check_extension(path)
    with _open(path) as (reader, _):
        return next(reader, [])


def extension(path: Path) -> str:
    """Return the extension of a table in lower case, without that of gzip."""
    packed = path.suffix.lower() == PACKED
    return Path(path.stem if packed else path.name).suffix.lower()


class _Builder:
    """One column while it is read; ``late`` says that words came after numbers had been stored."""

    def __init__(self, encoder: WordCodes | None) -> None:
        self.encoder = encoder
        self.codes: list[NDArray[np.int64]] = []
        self.values: list[NDArray[np.float64]] = []
        self.late = False

    def add(self, chunk: Sequence[str]) -> None:
        if self.late:
            return
        if self.encoder is None:
            numbers = floats(chunk)
            if numbers is not None:
                self.values.append(numbers)
                return
            if self.values:
                self.late = True
                return
            self.encoder = WordCodes()
        self.codes.append(self.encoder.encode(chunk))

    def column(self) -> Column:
        if self.encoder is not None:
            return Words(np.concatenate([np.empty(0, np.int64), *self.codes]), self.encoder.names)
        return Numbers(np.concatenate([np.empty(0), *self.values]))


def _fill(path: Path, header: list[str], builders: dict[str, _Builder], *, has_header: bool) -> NDArray[np.int64]:
    """Pass the rows of the file to the builders, chunk by chunk, and return the line of each row."""
    place = [(k, builders[name]) for k, name in enumerate(header) if name in builders]
    lines = [np.empty(0, np.int64)]
    with _open(path) as (reader, skipped):
        if has_header:
            next(reader)
        for starts, rows in _chunks(path, reader, len(header), skipped):
            lines.append(np.array(starts, dtype=np.int64))
            fields = list(zip(*rows, strict=True))
            for k, builder in place:
                builder.add(fields[k])
    return np.concatenate(lines)


def _chunks(path: Path, reader: "Reader", width: int, skipped: int) -> Iterator[tuple[list[int], list[list[str]]]]:
    """Yield lists of rows, and of the lines on which they start; empty lines are skipped."""
    size = max(1, CHUNK_FIELDS // width)
    starts, rows = list[int](), list[list[str]]()
    start = skipped + reader.line_num + 1
    for row in reader:
        if len(row) == width:
            rows.append(row)
            starts.append(start)
            if len(rows) == size:
                yield starts, rows
                starts, rows = [], []
        elif row:
            raise DataError(
                f"{path}, line {start}, has {len(row)} fields where the header has {width}: correct the line, and "
                "quote fields that contain the separator."
            )
        start = skipped + reader.line_num + 1
    if rows:
        yield starts, rows


def _header(path: Path, reader: "Reader") -> list[str]:
    first = next(reader, None)
    if not first:
        raise DataError(f"{path} is empty or starts with an empty line: its first line must name the columns.")
    names = [column_name(name, k) for k, name in enumerate(first)]
    limits.check_columns(len(names), what=str(path))
    doubled = sorted(name for name, count in Counter(names).items() if count > 1)
    if doubled:
        raise DataError(f"{path} has two columns called {doubled[0]!r}: rename one in the header line.")
    return names


@contextmanager
def _open(path: Path) -> Iterator[tuple["Reader", int]]:
    """Open a text table; yield its rows, header first, and the number of comment lines before it."""
    reader: Reader | None = None
    try:
        packed = path.suffix.lower() == PACKED
        with (gzip.open if packed else open)(path, "rt", encoding="utf-8-sig", newline="") as file:
            skipped = _skip_comments(file) if extension(path) in SPACED else 0
            start = file.tell()
            delimiter = _delimiter(path, next(limits.limited_lines(file, what=str(path)), ""))
            file.seek(start)
            lines = limits.limited_lines(file, what=str(path), most=limits.TEXT_BYTES if packed else None)
            reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
            yield reader, skipped
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not text in UTF-8 ({error.reason}): save it as CSV in UTF-8.") from None
    except csv.Error as error:
        line = 1 if reader is None else skipped + reader.line_num
        raise DataError(f"{path}, line {line}, cannot be read ({error}): check the quotes before it.") from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"{path} is no gzip file, or it is damaged ({error}): write it again.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): check the name and the permissions.") from None


def _skip_comments(file: IO[str]) -> int:
    """Move past the leading lines that start with # or %, and return their number."""
    skipped, start = 0, file.tell()
    while file.readline(limits.LINE_CHARACTERS).startswith(("#", "%")):
        skipped, start = skipped + 1, file.tell()
    file.seek(start)
    return skipped


def _delimiter(path: Path, header: str) -> str:
    """Return the separator: a tab in .tsv files, else the most frequent of comma, semicolon and tab in the header."""
    if extension(path) in (".tsv", ".tab"):
        return "\t"
    unquoted = "".join(header.split('"')[::2])
    best = max(",;\t", key=unquoted.count)
    return " " if unquoted.count(best) == 0 and extension(path) in SPACED else best


def _check_extension(path: Path) -> None:
    if not path.is_file():
        raise DataError(f"there is no file {path}: check the name.")
    if extension(path) not in (*TEXT, *PARQUET):
        raise DataError(
            f"{path} has the extension {path.suffix!r}, which is no table: use {', '.join((*TEXT, *PARQUET))}."
        )
