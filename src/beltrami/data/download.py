"""Download published files; a file appears complete and verified, or not at all."""

import contextlib
import http.client
import shutil
import tempfile
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from beltrami.data.file import atomic_file, file_digest
from beltrami.errors import DataError
from beltrami.position import Progress

CHUNK = 1 << 18
TIMEOUT = 30.0


@dataclass(frozen=True)
class RemoteFile:
    """A published file at ``url``, to be cached at ``path``, or a zip archive, whose ``members`` are to be cached at
    the given paths. ``measure`` computes the digest of a file, to compare with ``digest`` if that is known."""

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


def download(remote: RemoteFile, root: Path, *, timeout: float = TIMEOUT, progress: Progress | None = None) -> None:
    """Fetch ``remote`` into the folder ``root``; give up after ``timeout`` seconds without data."""
    try:
        if remote.path:
            with atomic_file(root / remote.path) as file:
                _fetch(remote, file, timeout=timeout, progress=progress)
            return
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=root, prefix=f".{remote.name}.") as archive:
            _fetch(remote, archive, timeout=timeout, progress=progress)
            _unpack(remote, archive, root)
    except OSError as error:
        why = f"could not be written below {root} ({error.strerror or error})"
        raise DataError(f"{remote.name} {why}: name another folder in BELTRAMI_CACHE") from error


def _fetch(remote: RemoteFile, file: IO[bytes], *, timeout: float, progress: Progress | None) -> None:
    """Write the remote content to ``file`` and verify its digest."""
    with contextlib.closing(_chunks(remote, timeout=timeout)) as chunks:
        for chunk, total in chunks:
            file.write(chunk)
            if progress is not None:
                progress(remote.name, file.tell(), total)
    file.flush()
    try:
        verified = remote.digest is None or remote.measure(Path(file.name)) == remote.digest
    except DataError:
        verified = False
    if not verified:
        raise DataError(f"the download of {remote.url} is not the published file and was deleted: try again")


def _chunks(remote: RemoteFile, *, timeout: float) -> Generator[tuple[bytes, int | None], None, None]:
    """Yield the chunks of the file, each with the total size if that is known."""
    received = 0
    try:
        with urllib.request.urlopen(remote.url, timeout=timeout) as response:
            length = response.headers.get("Content-Length")
            total = int(length) if length else None
            while chunk := response.read(CHUNK):
                received += len(chunk)
                yield chunk, total
    except (OSError, http.client.HTTPException) as error:
        raise DataError(f"{remote.url} could not be downloaded ({error}): check the network and try again") from error
    if total is not None and received != total:
        raise DataError(f"the download of {remote.url} stopped after {received} of {total} bytes: try again")


def _unpack(remote: RemoteFile, archive: IO[bytes], root: Path) -> None:
    try:
        with zipfile.ZipFile(archive) as bundle:
            for member, path in remote.members.items():
                with bundle.open(member) as packed, atomic_file(root / path) as file:
                    shutil.copyfileobj(packed, file, CHUNK)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, RuntimeError) as error:
        raise DataError(f"the archive from {remote.url} is broken or lacks a file ({error}): try again") from error
