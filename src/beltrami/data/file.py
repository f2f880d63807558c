"""Files: atomic writes, digests, and the folders of datasets and caches."""

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from torch import Tensor

from beltrami.errors import DataError


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file beside ``path``; move it to ``path`` if the block succeeds, else delete it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
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
