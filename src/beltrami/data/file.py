"""Files: atomic writes, digests, the folders of datasets and caches, and downloads of published files."""

import errno
import hashlib
import http.client
import os
import shutil
import tempfile
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from torch import Tensor

from beltrami.errors import DataError
from beltrami.file_limits import ARCHIVE_BYTES, check_members
from beltrami.position import Progress

CHUNK = 1 << 18
TEMPORARY = ".tmp"  # the end of the name of a file that is being written
TIMEOUT = 30.0


def make_folder(folder: Path) -> None:
    """Make a folder for results and refuse one that cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"cannot make {folder} ({error.strerror}): choose another folder with `--out`.") from error
    if not os.access(folder, os.W_OK):
        raise OSError(f"cannot write to {folder}: choose another folder with `--out`.")


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file beside ``path``; move it to ``path`` if the block succeeds, else delete it."""
    try:
        with _temporary_file(path) as file:
            yield file
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            text = f"{path} cannot be written ({error.strerror}): make room, or choose another folder."
            raise OSError(text) from error
        raise


@contextmanager
def _temporary_file(path: Path) -> Iterator[IO[bytes]]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", suffix=TEMPORARY, delete=False) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def write_atomically(path: Path, content: bytes) -> None:
    """Write a whole file, or leave the old one untouched if writing fails."""
    with atomic_file(path) as file:
        file.write(content)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tensor_digest(tensors: Mapping[str, Tensor] | Mapping[str, Tensor | None], *, name: str) -> str:
    """Return the SHA-256 of ``name`` and of the name, type, shape and values of each tensor."""
    total = hashlib.sha256(f"{name}; ".encode())
    for each, tensor in sorted(tensors.items()):
        kind = "none" if tensor is None else f"{tensor.dtype} {tuple(tensor.shape)}"
        total.update(f"{each}: {kind}; ".encode())
        if tensor is not None:
            total.update(tensor.cpu().contiguous().numpy().tobytes())
    return total.hexdigest()


def data_folder() -> Path | None:
    """Return the folder that BELTRAMI_DATA names, or None."""
    named = os.environ.get("BELTRAMI_DATA")
    return Path(named).expanduser() if named else None


def cache_folder() -> Path:
    """Return the cache: BELTRAMI_CACHE, or ``beltrami`` below XDG_CACHE_HOME, or ``~/.cache/beltrami``."""
    named = os.environ.get("BELTRAMI_CACHE")
    if named:
        return Path(named).expanduser()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "beltrami"


def corrupt_file(path: Path, reason: str) -> DataError:
    """Return the error for a dataset's file whose content is not the published one."""
    remedy = "delete it and try again, or point BELTRAMI_DATA at a folder with the right one"
    return DataError(f"{path} is corrupt or not the published file ({reason}): {remedy}.")


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
    """Fetch ``remote`` into ``root``, verified or not at all; give up after ``timeout`` seconds without data."""
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
    with closing(_chunks(remote, timeout=timeout)) as chunks:
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
                if received > ARCHIVE_BYTES:
                    raise DataError(f"the download of {remote.url} is larger than any published file: try again")
                yield chunk, total
    except (OSError, http.client.HTTPException) as error:
        raise DataError(f"{remote.url} could not be downloaded ({error}): check the network and try again") from error
    if total is not None and received != total:
        raise DataError(f"the download of {remote.url} stopped after {received} of {total} bytes: try again")


def _unpack(remote: RemoteFile, archive: IO[bytes], root: Path) -> None:
    try:
        with zipfile.ZipFile(archive) as bundle:
            check_members([bundle.getinfo(member) for member in remote.members], what=remote.name, memory=False)
            for member, path in remote.members.items():
                with bundle.open(member) as packed, atomic_file(root / path) as file:
                    shutil.copyfileobj(packed, file, CHUNK)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, RuntimeError) as error:
        raise DataError(f"the archive from {remote.url} is broken or lacks a file ({error}): try again") from error
