"""Downloads are complete and verified, or leave no file."""

import hashlib
import socket
import zipfile
from pathlib import Path

import pytest

from beltrami.data.file import RemoteFile, download
from beltrami.errors import DataError

BODY = bytes(range(256)) * 4000
Web = tuple[Path, str]


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@pytest.mark.usefixtures("empty_house")
def test_file_is_complete_and_progress_is_reported(web: Web, tmp_path: Path) -> None:
    folder, address = web
    (folder / "a.bin").write_bytes(BODY)
    reported: list[tuple[str, int, int | None]] = []
    remote = RemoteFile(f"{address}/a.bin", path="A/raw/a.bin", digest=hashlib.sha256(BODY).hexdigest())
    download(remote, tmp_path / "here", progress=lambda *what: reported.append(what))
    assert files(tmp_path / "here") == ["A/raw/a.bin"]
    assert (tmp_path / "here/A/raw/a.bin").read_bytes() == BODY
    assert {(name, total) for name, _, total in reported} == {("a.bin", len(BODY))}
    assert [done for _, done, _ in reported] == sorted({done for _, done, _ in reported})
    assert reported[-1][1] == len(BODY)


def test_file_urls_are_supported(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(BODY)
    download(RemoteFile((tmp_path / "a.bin").as_uri(), path="b.bin"), tmp_path / "here")
    assert (tmp_path / "here/b.bin").read_bytes() == BODY


@pytest.mark.usefixtures("empty_house")
@pytest.mark.parametrize(
    ("served", "asked", "digest", "match"),
    [
        ("a.bin", "a.bin", "0" * 64, "is not the published file and was deleted"),
        ("short.bin", "short.bin", None, "stopped after 512000 of 1024000 bytes|could not be downloaded"),
        ("a.bin", "b.bin", None, "could not be downloaded .*404"),
    ],
    ids=["wrong digest", "truncated", "missing"],
)
def test_failed_download_leaves_no_file(
    web: Web, tmp_path: Path, served: str, asked: str, digest: str | None, match: str
) -> None:
    folder, address = web
    (folder / served).write_bytes(BODY)
    with pytest.raises(DataError, match=match):
        download(RemoteFile(f"{address}/{asked}", path="A/a.bin", digest=digest), tmp_path / "here")
    assert files(tmp_path / "here") == []


@pytest.mark.usefixtures("empty_house")
def test_failed_download_keeps_the_old_file(web: Web, tmp_path: Path) -> None:
    folder, address = web
    (folder / "short.bin").write_bytes(BODY)
    (tmp_path / "a.bin").write_bytes(b"old")
    with pytest.raises(DataError):
        download(RemoteFile(f"{address}/short.bin", path="a.bin"), tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == b"old"


@pytest.mark.usefixtures("empty_house")
def test_interrupted_download_leaves_no_file(web: Web, tmp_path: Path) -> None:
    folder, address = web
    (folder / "a.bin").write_bytes(BODY)

    def interrupt(name: str, done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(RemoteFile(f"{address}/a.bin", path="a.bin"), tmp_path / "here", progress=interrupt)
    assert files(tmp_path / "here") == []


@pytest.mark.usefixtures("empty_house")
def test_silent_server_times_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/a.bin"
        with pytest.raises(DataError, match="timed out"):
            download(RemoteFile(url, path="a.bin"), tmp_path / "here", timeout=0.1)
    assert files(tmp_path / "here") == []


def test_archive_members_are_unpacked_to_their_paths(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "arxiv.zip", "w") as bundle:
        bundle.writestr("arxiv/raw/a.csv", "1,2")
        bundle.writestr("../escape.txt", "not wanted")
    remote = RemoteFile((tmp_path / "arxiv.zip").as_uri(), members={"arxiv/raw/a.csv": "ogbn_arxiv/raw/a.csv"})
    download(remote, tmp_path / "here")
    assert files(tmp_path / "here") == ["ogbn_arxiv/raw/a.csv"]
    lacking = RemoteFile(remote.url, members={"arxiv/raw/b.csv": "b.csv"})
    with pytest.raises(DataError, match="broken or lacks a file"):
        download(lacking, tmp_path / "there")
    assert files(tmp_path / "there") == []


def test_broken_archive_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "arxiv.zip").write_bytes(b"<html>")
    with pytest.raises(DataError, match="broken or lacks a file"):
        download(RemoteFile((tmp_path / "arxiv.zip").as_uri(), members={"a": "a"}), tmp_path / "here")
    assert files(tmp_path / "here") == []


def test_unwritable_cache_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(BODY)
    with pytest.raises(DataError, match=r"could not be written below .*: name another folder in BELTRAMI_CACHE"):
        download(RemoteFile((tmp_path / "a.bin").as_uri(), path="A/a.bin"), tmp_path / "a.bin")
