"""Mutations of files: of bytes, of text, and of the parts of containers, with correct checksums."""

import gzip
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

Mutation = Callable[[bytes, bytes, Random], bytes]  # of a content, with another one to splice with

NUMBERS = (
    *("-1", "0", "1", "NaN", "inf", "-inf", "1e308", "-1e308", "1e400", "1e-320", "4294967296", "9223372036854775807"),
    *("9223372036854775808", "-9223372036854775809", "99999999999999999999999", "1_000", "0x10", "1.5", "true", "null"),
    *('""', "٣", "1" * 5000),
)
WORDS = (b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"'", b",", b";", b"\t", b"\n\n", b"\r", b"&#0;", b"&lt;", b"\\")
DOCTYPE = b'<!DOCTYPE g [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'
INTEGERS = (0, 1, -1, 2**15, 2**31 - 1, -(2**31), 2**32 - 1, 2**40, 2**62, 2**63 - 1, -(2**63))
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 10**6, 2**63, 10**30, -(10**400), 0.5, 1e308, -1e308, float("nan"), float("inf")),
    *(
        "",
        "none",
        "a\nb",
        "../x",
        "\ud800",
        "x" * 10_000,
        [],
        {},
        [[]],
        [None],
        {"kind": "x"},
        [1e308] * 3,
        ["a"] * 1000,
    ),
)


def mutate(content: bytes, other: bytes, kind: str, random: Random) -> bytes:
    """Return the content changed by one to four mutations that suit its kind."""
    mutations = MUTATIONS[kind]
    for _ in range(random.choice((1, 1, 1, 2, 2, 4))):
        content = random.choice(mutations)(content, other, random)
    return content


def _place(content: bytes, random: Random) -> int:
    """Return a position, often near the start or the end, where headers are."""
    end = len(content)
    near = min(end, 256)
    return random.choice((random.randrange(end + 1), random.randrange(near + 1), end - random.randrange(near + 1)))


def _chunk(content: bytes, random: Random) -> tuple[int, int]:
    start = _place(content, random)
    return start, min(len(content), start + random.choice((1, 2, 4, 8, 64, 1000, len(content) // 3)))


def flip_bits(content: bytes, _: bytes, random: Random) -> bytes:
    changed = bytearray(content)
    for _count in range(random.choice((1, 1, 2, 8)) if content else 0):
        changed[min(_place(content, random), len(content) - 1)] ^= 1 << random.randrange(8)
    return bytes(changed)


def delete(content: bytes, _: bytes, random: Random) -> bytes:
    start, end = _chunk(content, random)
    return content[:start] + content[end:]


def duplicate(content: bytes, _: bytes, random: Random) -> bytes:
    start, end = _chunk(content, random)
    return content[:end] + content[start:end] * random.choice((1, 1, 3, 100)) + content[end:]


def insert(content: bytes, _: bytes, random: Random) -> bytes:
    at = _place(content, random)
    return content[:at] + random.randbytes(random.choice((1, 2, 4, 8, 100))) + content[at:]


def truncate(content: bytes, _: bytes, random: Random) -> bytes:
    return content[: _place(content, random)]


def splice(content: bytes, other: bytes, random: Random) -> bytes:
    return content[: _place(content, random)] + other[_place(other, random) :]


def overwrite_integer(content: bytes, _: bytes, random: Random) -> bytes:
    """Write an extreme integer of 1, 2, 4 or 8 bytes over others."""
    at, width = _place(content, random), random.choice((1, 2, 4, 8))
    value = random.choice(INTEGERS) % (1 << 8 * width)
    return content[:at] + value.to_bytes(width, random.choice(("little", "big"))) + content[at + width :]


def replace_number(content: bytes, _: bytes, random: Random) -> bytes:
    found = list(re.finditer(rb"-?\d+(\.\d+)?(e-?\d+)?", content[:200_000]))
    if not found:
        return content
    chosen = random.choice(found)
    return content[: chosen.start()] + random.choice(NUMBERS).encode() + content[chosen.end() :]


def change_lines(content: bytes, _: bytes, random: Random) -> bytes:
    lines = content.split(b"\n")
    at = random.randrange(len(lines))
    action = random.randrange(5)
    if action == 0:
        random.shuffle(lines)
    elif action == 1:
        lines[at:at] = [lines[at]] * random.choice((1, 2, 50))
    elif action == 2:
        del lines[at]
    elif action == 3:
        lines[at] = lines[at].replace(b",", random.choice((b";", b"\t", b" ", b"")))
    else:
        lines[0] = random.choice(lines)
    return b"\n".join(lines)


def insert_word(content: bytes, _: bytes, random: Random) -> bytes:
    at = _place(content, random)
    return content[:at] + random.choice((*WORDS, DOCTYPE)) + content[at:]


def lengthen(content: bytes, _: bytes, random: Random) -> bytes:
    at = _place(content, random)
    piece = random.choice((b"a", b",", b"1", b'"', b"[", b"<a>", b'{"a":', b"\n", b" ", b"\xc3\xa9"))
    return content[:at] + piece * random.choice((200, 70_000, 200_000)) + content[at:]


def encode_again(content: bytes, _: bytes, random: Random) -> bytes:
    text = content.decode("utf-8", "replace")
    return text.encode(random.choice(("utf-16", "utf-32", "utf-8-sig", "cp1252", "utf-7")), "replace")


def change_json(content: bytes, _: bytes, random: Random) -> bytes:
    """Replace, remove or add a value somewhere in a JSON text, or in a line of a text of JSON lines."""
    lines = content.split(b"\n")
    at = random.randrange(len(lines))
    for parts, chosen in (([content], 0), (lines, at)):
        with suppress(ValueError, RecursionError):
            parts[chosen] = json.dumps(_changed(json.loads(parts[chosen]), random)).encode()
            return b"\n".join(parts)
    return content


def _changed(tree: Any, random: Random) -> Any:
    if not isinstance(tree, (dict, list)) or not tree or random.random() < 0.1:
        return random.choice(VALUES)
    key = random.choice([*tree] if isinstance(tree, dict) else [*range(len(tree))])
    if random.random() < 0.15:
        del tree[key]
    elif random.random() < 0.1 and isinstance(tree, dict):
        tree[random.choice(("", "kind", "schema", "x" * 1000, "\x00", str(key) + "s"))] = random.choice(VALUES)
    else:
        tree[key] = _changed(tree[key], random)
    return tree


def change_zip(content: bytes, other: bytes, random: Random) -> bytes:
    """Mutate a member of a zip archive and write the archive again."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, RuntimeError, NotImplementedError, KeyError, EOFError):
        return flip_bits(content, other, random)
    chosen = random.choice([*members]) if members else ""
    again = random.choice((*BYTES, replace_number))
    members[chosen] = again(members.get(chosen, b""), random.choice([*members.values(), b""]), random)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, member in members.items():
            archive.writestr(name or "x", member)
    return out.getvalue()


def change_gzip(content: bytes, other: bytes, random: Random) -> bytes:
    try:
        text = gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        return flip_bits(content, other, random)
    return gzip.compress(random.choice(TEXT)(text, other, random), 1)


def change_png(content: bytes, other: bytes, random: Random) -> bytes:
    """Mutate the body of a chunk of a PNG file and correct its length and checksum."""
    chunks, at = [], 8
    while at + 8 <= len(content):
        (length,) = struct.unpack_from(">I", content, at)
        chunks.append((content[at + 4 : at + 8], content[at + 8 : at + 8 + length]))
        at += length + 12
    if not chunks:
        return flip_bits(content, other, random)
    chosen = random.randrange(len(chunks))
    kind, body = chunks[chosen]
    chunks[chosen] = kind, random.choice(BYTES)(body, other, random)
    return content[:8] + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def change_safetensors(content: bytes, other: bytes, random: Random) -> bytes:
    """Mutate the header of a safetensors file and correct its length, or mutate the values."""
    length = int.from_bytes(content[:8], "little")
    header, values = content[8 : 8 + length], content[8 + length :]
    if random.random() < 0.3:
        return content[: 8 + length] + random.choice(BYTES)(values, other, random)
    header = random.choice((change_json, change_json, replace_number, replace_number, *BYTES))(header, other, random)
    return len(header).to_bytes(8, "little") + header + values


BYTES = (flip_bits, delete, duplicate, insert, truncate, splice, overwrite_integer)
TEXT = (*BYTES, replace_number, replace_number, change_lines, change_lines, insert_word, lengthen, encode_again)
MUTATIONS: dict[str, tuple[Mutation, ...]] = {
    "binary": (*BYTES, overwrite_integer, replace_number),
    "text": TEXT,
    "json": (*TEXT, *(change_json,) * len(TEXT)),
    "zip": (*BYTES, *(change_zip,) * 2 * len(BYTES)),
    "gzip": (*BYTES, *(change_gzip,) * 2 * len(BYTES)),
    "png": (*BYTES, *(change_png,) * len(BYTES)),
    "safetensors": (*BYTES, *(change_safetensors,) * 2 * len(BYTES)),
}
"""The mutations of each kind of file."""
