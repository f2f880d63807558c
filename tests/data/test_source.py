"""Files come from BELTRAMI_DATA, then the cache, then their home; names are known or refused."""

from pathlib import Path

import pytest

from beltrami.data import CATALOGUE, Place, available, load
from beltrami.data.download import Remote
from beltrami.data.reader import READERS
from beltrami.data.source import Source, cache_folder, data_folder
from beltrami.errors import DataError, UnknownName

NOWHERE = "http://127.0.0.1:1/a.txt"
PATH = "A/raw/a.txt"


def put(root: Path, text: str) -> None:
    (root / PATH).parent.mkdir(parents=True)
    (root / PATH).write_text(text)


def test_user_folder_comes_before_cache_before_home(
    empty_house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("home")
    source = Source([Remote((tmp_path / "a.txt").as_uri(), path=PATH)])
    assert source.place() is Place.HOME
    assert not source.place().at_hand
    assert (source.obtain() / PATH).read_text() == "home"
    assert source.place() is Place.CACHE
    (empty_house / PATH).write_text("cache")
    assert (source.obtain() / PATH).read_text() == "cache"

    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.setenv("BELTRAMI_DATA", str(folder))
    assert (source.obtain() / PATH).read_text() == "cache"
    put(folder, "folder")
    assert source.place() is Place.FOLDER
    assert source.obtain() == folder


def test_only_what_the_cache_lacks_is_downloaded(empty_house: Path, tmp_path: Path) -> None:
    put(empty_house, "kept")
    (tmp_path / "b.txt").write_text("new")
    source = Source([Remote(NOWHERE, path=PATH), Remote((tmp_path / "b.txt").as_uri(), path="A/raw/b.txt")])
    assert source.place() is Place.HOME
    assert (source.obtain() / "A/raw/b.txt").read_text() == "new"


@pytest.mark.usefixtures("empty_house")
def test_without_network_the_refusal_says_which_files_to_bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source([Remote(NOWHERE, path=PATH)])
    advice = "check the network and try again, or set BELTRAMI_DATA to a folder that holds A/raw/a.txt"
    with pytest.raises(DataError, match=f"could not be downloaded .*: {advice}"):
        source.obtain()
    monkeypatch.setenv("BELTRAMI_DATA", str(tmp_path))
    with pytest.raises(DataError, match=f"or add to BELTRAMI_DATA={tmp_path} A/raw/a.txt"):
        source.obtain()


@pytest.mark.usefixtures("empty_house")
def test_misspelt_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELTRAMI_DATA", str(tmp_path / "nowhere"))
    assert available("cora") is Place.HOME
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


def test_unknown_dataset_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="unknown dataset 'Coral': did you mean 'cora'"):
        load("Coral")
    with pytest.raises(UnknownName, match="did you mean 'citeseer'"):
        available("cite-seer")


def test_every_name_has_facts_and_a_reader() -> None:
    assert set(CATALOGUE) == set(READERS)
    assert available("digits") is Place.EMBEDDED
    paths = [path for reader in READERS.values() for remote in reader.source.remotes for path in remote.paths]
    assert len(paths) == len(set(paths)) == 3 * 7 + 3 + 8
