"""Ledger: the file of a study's lines, to which one process at a time appends, durably."""

import os
from collections.abc import Sequence
from io import FileIO
from pathlib import Path
from types import TracebackType

from beltrami.errors import DataError
from beltrami.lab.study.record import Record, latest


class RecordLog:
    """A file with one JSON line a run, held for writing.

    A line is on the disk before :meth:`append` comes back. A process that was killed while it wrote leaves a last line
    without its end; that line is dropped when the file is next opened, and its run done again.

    Args:
        path: the file; made if there is none.
        resume: go on with a file that holds lines; else such a file is refused.
    """

    def __init__(self, path: Path, *, resume: bool) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = FileIO(path, "a+")
        try:
            _lock(self._file, path)
            if not resume and os.fstat(self._file.fileno()).st_size:
                raise ValueError(
                    f"the results file {path} is not empty: go on with it by `--resume`, or name another folder with "
                    "`--out`."
                )
            self.lines: list[Record] = read_lines(path)
            _drop_torn(self._file)
            _sync_folder(path.parent)
        except BaseException:
            self._file.close()
            raise

    def append(self, line: Record) -> None:
        """Add a line; once this returns, it outlives the process and the power."""
        text = f"{line.to_json()}\n".encode()
        if self._file.write(text) != len(text):
            raise OSError(f"the disk of {self.path} is full: make room, and go on with `--resume`.")
        os.fsync(self._file.fileno())
        self.lines.append(line)

    def read_again(self) -> None:
        """Know what the file holds: an interrupt may come between a line and the memory of it."""
        self.lines = read_lines(self.path)

    def runs(self) -> list[Record]:
        """Each run once, by its last line."""
        return latest(self.lines)

    def done(self) -> set[tuple[str, str]]:
        """The identities of the runs that ended without an error."""
        return {line.identity for line in self.runs() if line.error is None}

    def __enter__(self) -> "RecordLog":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()  # which gives up the lock


def read_lines(path: Path) -> list[Record]:
    """The whole lines of a file, none where there is no file; a :class:`DataError` says which one is not ours."""
    whole = path.read_bytes() if path.exists() else b""
    lines = []
    for number, text in enumerate(whole.split(b"\n")[:-1], start=1):  # what follows the last end is torn, or nothing
        try:
            lines.append(Record.parse(text.decode()))
        except ValueError as error:
            raise DataError(
                f"line {number} of {path} is no line of a study ({error}): take it out, or choose another folder."
            ) from None
    return lines


def read_folder(folder: Path) -> dict[str, Sequence[Record]]:
    """The lines of every study in a folder, by the study's name."""
    return {path.stem: read_lines(path) for path in sorted(folder.glob("*.jsonl"))}


def _drop_torn(file: FileIO) -> None:
    file.seek(0)
    whole = file.read()
    kept = whole.rfind(b"\n") + 1
    if kept < len(whole):
        file.truncate(kept)
        os.fsync(file.fileno())


def _lock(file: FileIO, path: Path) -> None:
    from fcntl import LOCK_EX, LOCK_NB, flock

    try:
        flock(file.fileno(), LOCK_EX | LOCK_NB)
    except BlockingIOError:
        raise DataError(
            f"another study is writing to {path}: wait for it, or name another folder with `--out`."
        ) from None


def _sync_folder(folder: Path) -> None:
    """So that the name of a new file is on the disk too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
