"""Files are found in BELTRAMI_DATA, then in the cache, then on the network; unknown names are refused."""

from pathlib import Path

import pytest

from beltrami.data import CATALOGUE, Availability, available, load, read_digits
from beltrami.data.catalogue import SOURCES
from beltrami.data.dataset_source import DatasetSource
from beltrami.data.file import RemoteFile, cache_folder, data_folder
from beltrami.errors import DataError, UnknownName

NOWHERE = "http://127.0.0.1:1/a.txt"
PATH = "A/raw/a.txt"


def source_of(*remotes: RemoteFile) -> DatasetSource:
    return DatasetSource(remotes, lambda root: read_digits())


def put(root: Path, text: str) -> None:
    (root / PATH).parent.mkdir(parents=True)
    (root / PATH).write_text(text)


def test_user_folder_precedes_cache_precedes_network(
    empty_house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("home")
    source = source_of(RemoteFile((tmp_path / "a.txt").as_uri(), path=PATH))
    assert source.availability() is Availability.DOWNLOAD
    assert not source.availability().is_local
    assert (source.obtain() / PATH).read_text() == "home"
    assert source.availability() is Availability.CACHE
    (empty_house / PATH).write_text("cache")
    assert (source.obtain() / PATH).read_text() == "cache"

    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.setenv("BELTRAMI_DATA", str(folder))
    assert (source.obtain() / PATH).read_text() == "cache"
    put(folder, "folder")
    assert source.availability() is Availability.FOLDER
    assert source.obtain() == folder


def test_only_missing_files_are_downloaded(empty_house: Path, tmp_path: Path) -> None:
    put(empty_house, "kept")
    (tmp_path / "b.txt").write_text("new")
    source = source_of(RemoteFile(NOWHERE, path=PATH), RemoteFile((tmp_path / "b.txt").as_uri(), path="A/raw/b.txt"))
    assert source.availability() is Availability.DOWNLOAD
    assert (source.obtain() / "A/raw/b.txt").read_text() == "new"


@pytest.mark.usefixtures("empty_house")
def test_error_without_network_names_the_missing_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of(RemoteFile(NOWHERE, path=PATH))
    advice = "check the network and try again, or set BELTRAMI_DATA to a folder with A/raw/a.txt"
    with pytest.raises(DataError, match=f"could not be downloaded .*: {advice}"):
        source.obtain()
    monkeypatch.setenv("BELTRAMI_DATA", str(tmp_path))
    with pytest.raises(DataError, match=f"or add to BELTRAMI_DATA={tmp_path} A/raw/a.txt"):
        source.obtain()


@pytest.mark.usefixtures("empty_house")
def test_missing_data_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELTRAMI_DATA", str(tmp_path / "nowhere"))
    assert available("cora") is Availability.DOWNLOAD
    with pytest.raises(DataError, match=r"BELTRAMI_DATA names .*nowhere, which is not a folder"):
        load("cora")
    assert load("digits").num_nodes == CATALOGUE["digits"].nodes


def test_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELTRAMI_CACHE", "/a")
    monkeypatch.setenv("XDG_CACHE_HOME", "/b")
    monkeypatch.setenv("HOME", "/c")
    assert cache_folder() == Path("/a")
    monkeypatch.setenv("BELTRAMI_CACHE", "")
    assert cache_folder() == Path("/b/beltrami")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path("/c/.cache/beltrami")
    monkeypatch.setenv("BELTRAMI_DATA", "")
    assert data_folder() is None


def test_unknown_dataset_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UnknownName, match="unknown dataset 'Coral': did you mean 'cora'"):
        load("Coral")
    with pytest.raises(UnknownName, match="did you mean 'citeseer'"):
        available("cite-seer")


def test_every_dataset_has_facts_and_a_source() -> None:
    assert set(CATALOGUE) == set(SOURCES)
    assert available("digits") is Availability.EMBEDDED
    paths = [path for source in SOURCES.values() for remote in source.remotes for path in remote.paths]
    assert len(paths) == len(set(paths)) == 3 * 7 + 3 + 8 + 8 + 5 + 5 + 6 * 12
