"""Source: where the files of a dataset are found, or else fetched from."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from beltrami.data.download import Progress, Remote, download
from beltrami.errors import DataError


class Place(StrEnum):
    """Where a dataset is: within the library, in the user's folder, in the cache, or only at its home."""

    EMBEDDED = "embedded"
    FOLDER = "in BELTRAMI_DATA"
    CACHE = "cached"
    HOME = "to be downloaded"

    @property
    def at_hand(self) -> bool:
        """Whether it loads without a network."""
        return self is not Place.HOME


@dataclass(frozen=True)
class Source:
    """The files of a dataset, wherever they are.

    Args:
        remotes: what is published, and where each file lies below a data folder; none for an embedded dataset.
    """

    remotes: Sequence[Remote]

    def place(self) -> Place:
        """Where the files are, in the order of preference; whether they are sound is seen when they are read."""
        if not self.remotes:
            return Place.EMBEDDED
        folder = data_folder()
        if folder is not None and not self._lacking(folder):
            return Place.FOLDER
        return Place.HOME if self._lacking(cache_folder()) else Place.CACHE

    def obtain(self, *, progress: Progress | None = None) -> Path:
        """The folder below which the files lie: BELTRAMI_DATA, or else the cache, once what it lacks is downloaded."""
        folder, cache = data_folder(), cache_folder()
        if folder is not None and self.remotes:
            if not folder.is_dir():
                raise DataError(f"BELTRAMI_DATA names {folder}, which is not a folder: correct it or unset it.")
            if not self._lacking(folder):
                return folder
        for remote in self.remotes:
            if not all((cache / path).is_file() for path in remote.paths):
                self._fetch(remote, cache, progress=progress)
        return cache

    def _lacking(self, root: Path | None) -> list[str]:
        paths = (path for remote in self.remotes for path in remote.paths)
        return [path for path in paths if root is None or not (root / path).is_file()]

    def _fetch(self, remote: Remote, cache: Path, *, progress: Progress | None) -> None:
        try:
            download(remote, cache, progress=progress)
        except DataError as error:
            folder = data_folder()
            where = "set BELTRAMI_DATA to a folder that holds" if folder is None else f"add to BELTRAMI_DATA={folder}"
            raise DataError(f"{error}, or {where} {', '.join(self._lacking(folder))}.") from error


def data_folder() -> Path | None:
    """The folder that BELTRAMI_DATA names, if it names one."""
    named = os.environ.get("BELTRAMI_DATA")
    return Path(named).expanduser() if named else None


def cache_folder() -> Path:
    """Where downloads are kept: BELTRAMI_CACHE, or ``beltrami`` below XDG_CACHE_HOME, or ``~/.cache/beltrami``."""
    named = os.environ.get("BELTRAMI_CACHE")
    if named:
        return Path(named).expanduser()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "beltrami"
