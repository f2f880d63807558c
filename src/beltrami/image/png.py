"""PNG of 16 bits a sample, which Pillow reads as 8: chunks, the five filters, and nothing besides."""

import struct
import zlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beltrami.errors import DataError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
SAMPLES = {0: 1, 2: 3, 4: 2, 6: 4}  # colour type -> samples of a pixel
COLOUR_TYPE = {count: kind for kind, count in SAMPLES.items()}
ABOVE = 2  # the filter we write with: differences to the row above


class Header(NamedTuple):
    """The first chunk of a file."""

    width: int
    height: int
    depth: int
    colour_type: int
    interlaced: bool


def header(content: bytes) -> Header:
    """What a PNG file says about itself."""
    if not content.startswith(SIGNATURE) or len(content) < 33 or content[12:16] != b"IHDR":
        raise DataError("it is no PNG file.")
    width, height, depth, colour_type, _, _, interlace = struct.unpack(">IIBBBBB", content[16:29])
    return Header(width, height, depth, colour_type, interlace != 0)


def decode(content: bytes) -> NDArray[np.uint16]:
    """The pixels of a file of 16 bits, (height, width, samples)."""
    head = header(content)
    if head.depth != 16 or head.colour_type not in SAMPLES:
        raise DataError(f"its depth of {head.depth} with colour type {head.colour_type} is not one of 16 bits.")
    if head.interlaced:
        raise DataError("it is interlaced, which is not read at 16 bits: save it without interlacing.")
    samples = SAMPLES[head.colour_type]
    size = 2 * samples
    try:
        raw = np.frombuffer(zlib.decompress(_data(content)), dtype=np.uint8)
        lines = raw.reshape(head.height, 1 + head.width * size)
    except (zlib.error, ValueError, struct.error) as error:
        raise DataError("its pixels are damaged or cut short.") from error
    if head.height and lines[:, 0].max() > 4:
        raise DataError("its pixels are damaged: a row has an unknown filter.")
    plain = _unfilter(lines[:, 1:].reshape(head.height, head.width, size), lines[:, 0])
    return plain.reshape(head.height, head.width, samples, 2).view(">u2")[..., 0].astype(np.uint16)


def encode(pixels: NDArray[np.uint16]) -> bytes:
    """A file of 16 bits with these pixels, (height, width, samples)."""
    height, width, samples = pixels.shape
    rows = np.ascontiguousarray(pixels.astype(">u2")).view(np.uint8).reshape(height, -1)
    lines = np.empty((height, 1 + rows.shape[1]), dtype=np.uint8)
    lines[:, 0] = ABOVE
    lines[:, 1:] = np.diff(rows, axis=0, prepend=np.zeros((1, rows.shape[1]), dtype=np.uint8))
    head = struct.pack(">IIBBBBB", width, height, 16, COLOUR_TYPE[samples], 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(kind, body) for kind, body in chunks)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _data(content: bytes) -> bytes:
    """The bodies of all data chunks, one after the other."""
    place, found = len(SIGNATURE), []
    while place + 8 <= len(content):
        (length,) = struct.unpack(">I", content[place : place + 4])
        kind, body = content[place + 4 : place + 8], content[place + 8 : place + 8 + length]
        (check,) = struct.unpack(">I", content[place + 8 + length : place + 12 + length])
        if zlib.crc32(kind + body) != check:
            raise ValueError("a chunk is damaged")
        if kind == b"IDAT":
            found.append(body)
        place += 12 + length
    return b"".join(found)


def _unfilter(pixels: NDArray[np.uint8], filters: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Undo the filters: each byte was the difference to a guess from its neighbours left, above, and above left.

    A pixel waits for these three alone, so all pixels of an antidiagonal, one in each row, are done at once.
    """
    height, width, size = pixels.shape
    done = np.zeros((height + 1, width + 1, size), dtype=np.int16)  # with a border of zeros above and to the left
    for diagonal in range(height + width - 1):
        rows = np.arange(max(0, diagonal - width + 1), min(height, diagonal + 1))
        columns = diagonal - rows
        left, above, corner = done[rows + 1, columns], done[rows, columns + 1], done[rows, columns]
        nearest = _paeth(left, above, corner)
        kind = filters[rows, None]
        guess = np.choose(kind, (np.zeros_like(left), left, above, (left + above) // 2, nearest))
        done[rows + 1, columns + 1] = (pixels[rows, columns] + guess) & 0xFF
    return done[1:, 1:].astype(np.uint8)


def _paeth(left: NDArray[np.int16], above: NDArray[np.int16], corner: NDArray[np.int16]) -> NDArray[np.int16]:
    """Of the three neighbours the one nearest to left + above - corner; ties go in this order."""
    to_left, to_above, to_corner = abs(above - corner), abs(left - corner), abs(left + above - 2 * corner)
    by_above = np.where(to_above <= to_corner, above, corner)
    return np.where((to_left <= to_above) & (to_left <= to_corner), left, by_above)
