"""Downloads arrive whole and verified, or leave nothing behind."""

import hashlib
import socket
import zipfile
from pathlib import Path

import pytest

from beltrami.data.download import Remote, download
from beltrami.errors import DataError

BODY = bytes(range(256)) * 4000
Web = tuple[Path, str]


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@pytest.mark.usefixtures("empty_house")
def test_file_arrives_whole_and_progress_is_told(web: Web, tmp_path: Path) -> None:
    folder, address = web
    (folder / "a.bin").write_bytes(BODY)
    told: list[tuple[str, int, int | None]] = []
    remote = Remote(f"{address}/a.bin", path="A/raw/a.bin", digest=hashlib.sha256(BODY).hexdigest())
    download(remote, tmp_path / "here", progress=lambda *what: told.append(what))
    assert files(tmp_path / "here") == ["A/raw/a.bin"]
    assert (tmp_path / "here/A/raw/a.bin").read_bytes() == BODY
    assert {(name, total) for name, _, total in told} == {("a.bin", len(BODY))}
    assert [done for _, done, _ in told] == sorted({done for _, done, _ in told})
    assert told[-1][1] == len(BODY)


def test_file_addresses_work_without_a_server(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(BODY)
    download(Remote((tmp_path / "a.bin").as_uri(), path="b.bin"), tmp_path / "here")
    assert (tmp_path / "here/b.bin").read_bytes() == BODY


@pytest.mark.usefixtures("empty_house")
@pytest.mark.parametrize(
    ("served", "asked", "digest", "complaint"),
    [
        ("a.bin", "a.bin", "0" * 64, "is not the published file and was thrown away"),
        ("short.bin", "short.bin", None, "broke off after 512000 of 1024000 bytes|could not be downloaded"),
        ("a.bin", "b.bin", None, "could not be downloaded .*404"),
    ],
    ids=["wrong digest", "cut off", "not there"],
)
def test_failed_download_leaves_nothing(
    web: Web, tmp_path: Path, served: str, asked: str, digest: str | None, complaint: str
) -> None:
    folder, address = web
    (folder / served).write_bytes(BODY)
    with pytest.raises(DataError, match=complaint):
        download(Remote(f"{address}/{asked}", path="A/a.bin", digest=digest), tmp_path / "here")
    assert files(tmp_path / "here") == []


@pytest.mark.usefixtures("empty_house")
def test_failed_download_leaves_the_file_that_was_there(web: Web, tmp_path: Path) -> None:
    folder, address = web
    (folder / "short.bin").write_bytes(BODY)
    (tmp_path / "a.bin").write_bytes(b"old")
    with pytest.raises(DataError):
        download(Remote(f"{address}/short.bin", path="a.bin"), tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == b"old"


@pytest.mark.usefixtures("empty_house")
def test_interrupted_download_leaves_nothing(web: Web, tmp_path: Path) -> None:
    folder, address = web
    (folder / "a.bin").write_bytes(BODY)

    def interrupt(name: str, done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(Remote(f"{address}/a.bin", path="a.bin"), tmp_path / "here", progress=interrupt)
    assert files(tmp_path / "here") == []


@pytest.mark.usefixtures("empty_house")
def test_silent_server_is_given_up(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/a.bin"
        with pytest.raises(DataError, match="timed out"):
            download(Remote(url, path="a.bin"), tmp_path / "here", timeout=0.1)
    assert files(tmp_path / "here") == []


def test_archive_is_unpacked_into_its_places(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "arxiv.zip", "w") as bundle:
        bundle.writestr("arxiv/raw/a.csv", "1,2")
        bundle.writestr("../escape.txt", "not wanted")
    remote = Remote((tmp_path / "arxiv.zip").as_uri(), members={"arxiv/raw/a.csv": "ogbn_arxiv/raw/a.csv"})
    download(remote, tmp_path / "here")
    assert files(tmp_path / "here") == ["ogbn_arxiv/raw/a.csv"]
    lacking = Remote(remote.url, members={"arxiv/raw/b.csv": "b.csv"})
    with pytest.raises(DataError, match="broken or lacks a file"):
        download(lacking, tmp_path / "there")
    assert files(tmp_path / "there") == []


def test_broken_archive_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "arxiv.zip").write_bytes(b"<html>")
    with pytest.raises(DataError, match="broken or lacks a file"):
        download(Remote((tmp_path / "arxiv.zip").as_uri(), members={"a": "a"}), tmp_path / "here")
    assert files(tmp_path / "here") == []


def test_unwritable_cache_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(BODY)
    with pytest.raises(DataError, match=r"could not be written below .*: name another folder in BELTRAMI_CACHE"):
        download(Remote((tmp_path / "a.bin").as_uri(), path="A/a.bin"), tmp_path / "a.bin")
