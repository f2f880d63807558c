"""Download: bringing published files to this machine, whole or not at all."""

import contextlib
import http.client
import os
import shutil
import urllib.request
import uuid
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from beltrami.data.digest import file_digest
from beltrami.errors import DataError

CHUNK = 1 << 18
TIMEOUT = 30.0

Progress = Callable[[str, int, int | None], None]
"""Told the file's name, the bytes that came so far, and how many there will be if that is known."""


@dataclass(frozen=True)
class Remote:
    """A published file, or a zip archive of several.

    Args:
        url: where it is published.
        path: where it goes below the cache folder; empty for an archive.
        members: for an archive, the names of its members that are kept, with where each goes.
        digest: the known digest, if there is one.
        measure: how the digest is taken from the file.
    """

    url: str
    path: str = ""
    members: Mapping[str, str] = field(default_factory=dict)
    digest: str | None = None
    measure: Callable[[Path], str] = file_digest

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self.members.values()) or (self.path,)

    @property
    def name(self) -> str:
        return self.url.rsplit("/", 1)[-1]


def download(remote: Remote, root: Path, *, timeout: float = TIMEOUT, progress: Progress | None = None) -> None:
    """Fetch ``remote`` into place below ``root``: a file appears under its name complete and verified, or not at all.

    Args:
        remote: what to fetch.
        root: the cache folder; made if need be.
        timeout: seconds of silence after which to give up.
        progress: called after every piece.
    """
    try:
        with _appearing(root / (remote.path or remote.name)) as (part, keep):
            _stream(remote, part, timeout=timeout, progress=progress)
            _verify(remote, part)
            if remote.path:
                keep()
            else:
                _unpack(remote, part, root)
    except OSError as error:
        raise DataError(
            f"{remote.name} could not be written below {root} ({error.strerror or error}): name another folder in "
            "BELTRAMI_CACHE"
        ) from error


@contextlib.contextmanager
def _appearing(target: Path) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A hidden path beside ``target`` to write to, and the act that puts it in place; without the act, it vanishes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        yield part, lambda: os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _stream(remote: Remote, part: Path, *, timeout: float, progress: Progress | None) -> None:
    with part.open("xb") as file, contextlib.closing(_pieces(remote, timeout=timeout)) as pieces:
        for piece, total in pieces:
            file.write(piece)
            if progress is not None:
                progress(remote.name, file.tell(), total)
        _settle(file)


def _pieces(remote: Remote, *, timeout: float) -> Generator[tuple[bytes, int | None], None, None]:
    """The pieces of the file as they come, each with the size of the whole if that is known."""
    received = 0
    try:
        with urllib.request.urlopen(remote.url, timeout=timeout) as response:
            length = response.headers.get("Content-Length")
            total = int(length) if length else None
            while piece := response.read(CHUNK):
                received += len(piece)
                yield piece, total
    except (OSError, http.client.HTTPException) as error:
        raise DataError(f"{remote.url} could not be downloaded ({error}): check the network and try again") from error
    if total is not None and received != total:
        raise DataError(f"the download of {remote.url} broke off after {received} of {total} bytes: try again")


def _settle(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _verify(remote: Remote, part: Path) -> None:
    if remote.digest is None:
        return
    try:
        sound = remote.measure(part) == remote.digest
    except DataError:
        sound = False
    if not sound:
        raise DataError(f"what came from {remote.url} is not the published file and was thrown away: try again")


def _unpack(remote: Remote, archive: Path, root: Path) -> None:
    try:
        with zipfile.ZipFile(archive) as bundle:
            for member, path in remote.members.items():
                with bundle.open(member) as packed, _appearing(root / path) as (part, keep):
                    with part.open("xb") as file:
                        shutil.copyfileobj(packed, file, CHUNK)
                        _settle(file)
                    keep()
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, RuntimeError) as error:
        raise DataError(f"the archive from {remote.url} is broken or lacks a file ({error}): try again") from error
