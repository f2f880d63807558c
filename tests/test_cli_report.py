"""`beltrami report` and `beltrami compare`: files that are written, and input that is refused in one sentence."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from run_data_examples import class_run
from shell import Beltrami


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a finished run, whose data are an example."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "result.json").write_text("{}")

    def load(folder: Path, *, device: str, progress: Any) -> Any:
        return SimpleNamespace(data=lambda *, seconds=1.0, progress: class_run())

    monkeypatch.setitem(sys.modules, "beltrami.report.collect", SimpleNamespace(LoadedRun=SimpleNamespace(load=load)))
    return folder


def test_report_writes_a_page_into_the_run(beltrami: Beltrami, run: Path) -> None:
    done = beltrami("report", str(run))
    assert done.code == 0, done.err
    page = (run / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert str(run / "report.html") in done.out
    assert " kB" in done.out
    assert sorted(path.name for path in run.iterdir()) == ["report.html", "result.json"]


def test_report_writes_where_it_is_told(beltrami: Beltrami, run: Path, tmp_path: Path) -> None:
    assert beltrami("report", str(run), "--out", "pages/mine.html").code == 0
    assert (tmp_path / "pages" / "mine.html").stat().st_size > 10_000


def test_compare_writes_a_page(beltrami: Beltrami, run: Path, tmp_path: Path) -> None:
    done = beltrami("compare", str(run), str(run))
    assert done.code == 0, done.err
    assert "2 runs compared" in (tmp_path / "compare.html").read_text()


def test_bad_input_is_refused_in_one_sentence(beltrami: Beltrami, run: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "checkpoint.safetensors").touch()
    (tmp_path / "file").touch()
    for arguments, said in {
        ("report", "missing"): "missing is missing: name the folder of a run",
        ("report", "file"): "file is a file: name the folder of a run",
        ("report", "empty"): "empty holds no run: name a folder that `beltrami train` wrote",
        ("report", "begun"): "the run in begun is not finished: go on with",
        ("report", str(run), "--format", "jpeg"): "unknown format 'jpeg'",
        ("report", str(run), "--out", "empty"): "empty is a folder: name a file in it",
        ("report", str(run), "--format", "mp4", "--out", "flow.gif"): "`--out flow.gif` needs the ending .mp4",
        ("report", str(run), "--device", "tpu"): "`--device` takes cpu, cuda or cuda:N",
        ("compare", str(run)): "needs the folders of at least two runs; got 1",
        ("compare", str(run), "empty"): "empty holds no run",
    }.items():
        done = beltrami(*arguments)
        assert done.code != 0, arguments
        assert said in done.err
        assert len(done.err.strip().splitlines()) == 1, done.err
    assert not (run / "report.html").exists()
