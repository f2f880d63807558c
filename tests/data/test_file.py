"""A file is written whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from beltrami.data.file import write_atomically


def test_atomic_write_makes_the_folder_and_a_file_others_may_read(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "first" / "result.json"
    write_atomically(path, b"{}")
    assert path.read_bytes() == b"{}"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(path.parent.iterdir()) == [path]


def test_atomic_write_takes_the_place_of_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_atomically(path, b"a long old content")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("stage", ["fsync", "chmod", "replace"])
@pytest.mark.parametrize("failure", [OSError("no space left"), KeyboardInterrupt()], ids=["disk full", "interrupt"])
def test_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, failure: BaseException
) -> None:
    path = tmp_path / "result.json"
    write_atomically(path, b"old")

    def fail(*arguments: object) -> None:
        raise failure

    monkeypatch.setattr(os, stage, fail)
    with pytest.raises(type(failure)):
        write_atomically(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_first_write_that_fails_leaves_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "result.json"
    folder.mkdir()
    with pytest.raises(OSError, match="directory"):
        write_atomically(folder, b"a file cannot take the place of a folder")
    assert list(tmp_path.iterdir()) == [folder]
    assert list(folder.iterdir()) == []
