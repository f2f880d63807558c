"""A file is written completely or not at all."""

import os
import stat
from pathlib import Path

import pytest

from beltrami.data.file import write_atomically


def test_atomic_write_creates_the_folder_and_a_readable_file(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "first" / "result.json"
    write_atomically(path, b"{}")
    assert path.read_bytes() == b"{}"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(path.parent.iterdir()) == [path]


def test_atomic_write_replaces_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_atomically(path, b"a long old content")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("stage", ["fsync", "chmod", "replace"])
@pytest.mark.parametrize("failure", [OSError("no space left"), KeyboardInterrupt()], ids=["disk full", "interrupt"])
def test_failed_write_keeps_the_old_file(
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


def test_failed_first_write_leaves_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "result.json"
    folder.mkdir()
    with pytest.raises(OSError, match="directory"):
        write_atomically(folder, b"a file cannot replace a folder")
    assert list(tmp_path.iterdir()) == [folder]
    assert list(folder.iterdir()) == []
