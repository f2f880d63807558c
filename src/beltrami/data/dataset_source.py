"""Where the files of a dataset are: in BELTRAMI_DATA, in the cache, or on the network."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from beltrami.data.dataset import Dataset
from beltrami.data.file import RemoteFile, cache_folder, data_folder, download
from beltrami.errors import DataError
from beltrami.position import Progress


class Availability(StrEnum):
    """Where a dataset's files are."""

    EMBEDDED = "embedded"
    FOLDER = "in BELTRAMI_DATA"
    CACHE = "cached"
    DOWNLOAD = "to be downloaded"

    @property
    def is_local(self) -> bool:
        """Whether the dataset loads without a network."""
        return self is not Availability.DOWNLOAD


@dataclass(frozen=True)
class DatasetSource:
    """The published files of a dataset, none for an embedded one, and the function that reads them from a folder."""

    remotes: Sequence[RemoteFile]
    read: Callable[[Path], Dataset]
    check: Callable[[], None] = lambda: None  # refuses a dataset before its files are downloaded or read

    def availability(self) -> Availability:
        """Return where the files are, in order of preference; they are verified when they are read."""
        if not self.remotes:
            return Availability.EMBEDDED
        folder = data_folder()
        if folder is not None and not self._missing(folder):
            return Availability.FOLDER
        return Availability.DOWNLOAD if self._missing(cache_folder()) else Availability.CACHE

    def obtain(self, *, progress: Progress | None = None) -> Path:
        """Return the folder that holds the files: BELTRAMI_DATA, or the cache after downloading missing files."""
        folder, cache = data_folder(), cache_folder()
        if folder is not None and self.remotes and not folder.is_dir():
            raise DataError(f"BELTRAMI_DATA names {folder}, which is not a folder: correct it or unset it.")
        if folder is not None and self.availability() is Availability.FOLDER:
            return folder
        for remote in self.remotes:
            if not all((cache / path).is_file() for path in remote.paths):
                try:
                    download(remote, cache, progress=progress)
                except DataError as error:
                    where = "set BELTRAMI_DATA to a folder with" if folder is None else f"add to BELTRAMI_DATA={folder}"
                    raise DataError(f"{error}, or {where} {', '.join(self._missing(folder))}.") from error
        return cache

    def _missing(self, root: Path | None) -> list[str]:
        paths = (path for remote in self.remotes for path in remote.paths)
        return [path for path in paths if root is None or not (root / path).is_file()]
