"""The folder of a run: one process writes at a time, its files belong together, a run is replaced on demand only."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count, takewhile
from pathlib import Path

from beltrami.data.file import TEMPORARY, file_digest, make_folder
from beltrami.errors import DataError

CHECKPOINT = "checkpoint.safetensors"
RESULTS = ("result.json", "predictor.json")  # written last, when all other files of a run are there
RUNS = Path("runs")


def is_finished(folder: Path) -> bool:
    """Return whether a folder holds a finished run, and no run that is to replace it and was stopped."""
    return any((folder / name).exists() for name in RESULTS) and not (folder / CHECKPOINT).exists()


def is_taken(folder: Path) -> bool:
    """Return whether a folder holds a run, finished or not."""
    return is_finished(folder) or (folder / CHECKPOINT).exists()


@contextmanager
def run_folder(
    folder: Path | None, name: str, *, force: bool = False, resumes: Callable[[Path], bool] | None = None
) -> Iterator[Path]:
    """Make the folder of a run and keep other writers out of it.

    Args:
        folder: the folder; None for the first of ``runs/NAME``, ``runs/NAME-2`` and so on that holds no run and that no
            process writes to. A given folder that holds a run is refused.
        force: replace the run in the folder, by default in ``runs/NAME``.
        resumes: None for a new run. To continue a run, a function that says whether the run in a folder is that one;
            without ``folder``, the first such folder is taken, and if there is none, a new run begins.
    """
    if folder is None:
        folder, handle = _first_free(name, force, resumes)
    else:
        handle = _opened_alone(folder)
    try:
        if not force and resumes is None and is_taken(folder):
            kind, remedy = "a finished run", "replace it with `--force`"
            if not is_finished(folder):
                kind, remedy = "an unfinished run", "go on with `--resume`, begin anew with `--force`"
            raise ValueError(f"{folder} holds {kind}: {remedy}, or choose another folder with `--out`.")
        if force:
            (folder / CHECKPOINT).unlink(missing_ok=True)
        for left in folder.glob(f".*{TEMPORARY}"):  # by a process that was killed
            left.unlink(missing_ok=True)
        yield folder
    finally:
        os.close(handle)  # which releases the lock


def _first_free(name: str, force: bool, resumes: Callable[[Path], bool] | None) -> tuple[Path, int]:
    """Return the default folder of a run, and the handle of its lock."""
    found = RUNS / name if force else None
    if resumes is not None:
        found = next(filter(resumes, takewhile(is_taken, _numbered(name))), None)
    if found is not None:
        return found, _opened_alone(found)
    for folder in _numbered(name):
        handle = None if is_taken(folder) else _opened(folder)
        if handle is not None and not is_taken(folder):
            return folder, handle
        if handle is not None:
            os.close(handle)
    raise AssertionError("there is always a next number")


def _opened_alone(folder: Path) -> int:
    handle = _opened(folder)
    if handle is None:
        raise DataError(f"another process is writing to {folder}: wait for it, or choose another with `--out`.")
    return handle


def _numbered(name: str) -> Iterator[Path]:
    return (RUNS / (name if number == 1 else f"{name}-{number}") for number in count(1))


def begin_to_save(folder: Path) -> None:
    """Remove the files that say that a run is finished; they are written again as the last ones."""
    for name in RESULTS:
        (folder / name).unlink(missing_ok=True)


def digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of some files of a folder by name."""
    return {name: file_digest(folder / name) for name in names}


def check_digests(folder: Path, expected: Mapping[str, str]) -> None:
    """Refuse a folder in which a file is missing or not the one that was saved with the others."""
    for name, digest in expected.items():
        path = folder / name
        if "/" in name or not path.is_file() or file_digest(path) != digest:
            fault = "is missing" if not path.is_file() else "has changed since the run was saved"
            raise DataError(f"{path} {fault}: the files of a run belong together; restore it, or train again.")


def _opened(folder: Path) -> int | None:
    """Make a folder, lock it and return the handle of the lock; None if another process holds it."""
    from fcntl import LOCK_EX, LOCK_NB, flock

    make_folder(folder)
    handle = os.open(folder, os.O_RDONLY)
    try:
        flock(handle, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError:  # a file system without locks
        pass
    return handle
