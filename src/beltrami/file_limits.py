"""Limits on the size of files that are read, stated here and checked before memory is allocated for their content."""

import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from beltrami.errors import DataError
from beltrami.memory import free_memory, in_bytes

MIB, GIB = 2**20, 2**30
JSON_BYTES = 256 * MIB  # of a JSON file, and of a line of records
JSON_GROWTH = 16  # bytes of Python objects for each byte of JSON
SAFETENSORS_HEADER_BYTES = 16 * MIB
PICKLE_BYTES = GIB
PICKLE_OPCODES = 50_000_000
ARCHIVE_BYTES = 128 * GIB  # of all members of a zip archive, and of a download; ogbn-papers100M has 77 GiB
DEFLATE_RATIO = 1032  # bytes that one byte of a deflated file can expand to, at most
TEXT_BYTES = 16 * GIB  # of the text in a compressed table
LINE_CHARACTERS = 32 * MIB  # of a line of a text table
COLUMNS = 2**16  # of a table
XML_GROWTH = 32  # bytes of Python objects for each byte of XML
IMAGE_BYTES = GIB
IMAGE_PIXELS = 89_478_485  # at which Pillow warns of a decompression bomb: a quarter of a GiB in RGB


def check_memory(needed: int, *, what: str) -> None:
    """Refuse content that needs more memory than is free."""
    if needed > 64 * MIB and needed > (free := free_memory()):  # below that, asking takes longer than it is worth
        raise DataError(f"{what} needs {in_bytes(needed)} of memory, and {in_bytes(free)} are free.")


def read_limited(path: Path, *, most: int, growth: int = 1) -> bytes:
    """Return the content of a file of at most ``most`` bytes that needs ``growth`` bytes of memory for each of them."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise DataError(
                f"{path} has {in_bytes(size)}, and at most {in_bytes(most)} are read: is it the right file?"
            )
        check_memory(growth * size, what=str(path))
        return file.read()


def read_json(path: Path) -> bytes:
    """Return the text of a JSON file within the limits."""
    return read_limited(path, most=JSON_BYTES, growth=JSON_GROWTH)


def check_safetensors(path: Path) -> None:
    """Refuse a safetensors file whose header is longer than the file or the limit, or that does not fit into memory."""
    with path.open("rb") as file:
        size, header = os.fstat(file.fileno()).st_size, int.from_bytes(file.read(8), "little")
    if size < 8 or header > size - 8 or header > SAFETENSORS_HEADER_BYTES:
        raise DataError(f"its header would have {header} bytes of {size}: the file is damaged or of another kind.")
    check_memory(2 * size, what=str(path))  # the bytes and the tensors made of them


def check_members(members: Iterable[zipfile.ZipInfo], *, what: str, memory: bool = True) -> None:
    """Refuse members of a zip archive of untrue or excessive sizes, or, with ``memory``, of more than is free."""
    total = 0
    for member in members:
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DataError(f"{what}: {member.filename!r} is compressed by a method other than deflate.")
        if member.file_size > DEFLATE_RATIO * (member.compress_size + 1):
            raise DataError(
                f"{what}: {member.filename!r} claims to expand {member.compress_size} to {member.file_size} bytes."
            )
        total += member.file_size
    if total > ARCHIVE_BYTES:
        raise DataError(f"{what} expands to {in_bytes(total)}, and at most {in_bytes(ARCHIVE_BYTES)} are read.")
    if memory:
        check_memory(total, what=what)


def check_xml(path: Path) -> None:
    """Refuse an XML file with a document type, whose entities may expand without bound, or too large for the memory."""
    from xml.parsers import expat

    def refuse(*_: object) -> None:
        raise DataError("it has a document type (DOCTYPE), which is not read: remove it")

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    with path.open("rb") as file:
        check_memory(XML_GROWTH * os.fstat(file.fileno()).st_size, what="it")
        try:
            parser.ParseFile(file)
        except expat.ExpatError as error:
            raise DataError(f"it is no XML: {error}") from None


def check_columns(count: int, *, what: str) -> None:
    """Refuse a table of too many columns."""
    if count > COLUMNS:
        raise DataError(f"{what} has {count} columns, and at most {COLUMNS} are read: is it a table of nodes or edges?")


def limited_lines(file: IO[str], *, what: str, most: int | None = None) -> Iterator[str]:
    """Yield the lines of a text; refuse a line over ``LINE_CHARACTERS``, and more than ``most`` characters in all."""
    total = 0
    while line := file.readline(LINE_CHARACTERS):
        total += len(line)
        if len(line) == LINE_CHARACTERS:
            raise DataError(f"{what} has a line of {LINE_CHARACTERS} characters or more: is it a table?")
        if most is not None and total > most:
            raise DataError(f"{what} has more than {in_bytes(most)} of text.")
        yield line
