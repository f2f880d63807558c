"""`beltrami report`, `watch`, `compare` and `explain`: files that are written, pages that are served, and input that is
refused in one sentence."""

import os
import signal
import socket
import subprocess
import sys
import urllib.parse
import urllib.request
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
        return SimpleNamespace(
            data=lambda *, seconds=1.0, progress: class_run(), with_flow=lambda *, progress: class_run()
        )

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


def test_compare_writes_figures(beltrami: Beltrami, run: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    done = beltrami("compare", str(run), str(run), "--format", "svg")
    assert done.code == 0, done.err
    names = ["loss.svg", "test-time.svg", "validation-time.svg", "validation.svg"]
    assert sorted(path.name for path in (tmp_path / "compare").iterdir()) == names


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
        ("watch", "empty"): "empty holds no run",
        ("watch", str(run)): "has no flow to watch: `beltrami report",
        ("explain", "real", "x", "--top", "0"): "`--top` must be at least 1; got 0",
        ("compare", str(run)): "needs the folders of at least two runs; got 1",
        ("compare", str(run), "empty"): "empty holds no run",
        ("compare", str(run), str(run), "--format", "gif"): "unknown format 'gif'",
    }.items():
        done = beltrami(*arguments)
        assert done.code != 0, arguments
        assert said in done.err
        assert len(done.err.strip().splitlines()) == 1, done.err
    assert not (run / "report.html").exists()


@pytest.mark.slow
def test_a_trained_run_is_reported_explained_and_watched(beltrami: Beltrami) -> None:
    quick = ("--set", "train.epochs=4", "--set", "train.patience=4")
    assert beltrami("train", "digits", *quick, "--out", "run").code == 0
    assert beltrami("report", "run").code == 0
    page = Path("run/report.html").read_text()
    assert '<script type="application/json" id="flow-data">' in page
    explained = beltrami("explain", "run", "17", "--top", "2")
    assert explained.code == 0, explained.err
    assert "margin over" in explained.out
    assert "run has no node 5000: its nodes are numbers from 0 to 1796" in beltrami("explain", "run", "5000").err

    command = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from beltrami.cli import main; main()"
    )
    watching = subprocess.Popen(
        [sys.executable, "-c", command, "watch", "run", "--no-open"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONFAULTHANDLER": "1"},
        text=True,
    )
    assert watching.stdout is not None
    address = watching.stdout.readline().split()[0]
    assert b'id="flow-data"' in urllib.request.urlopen(address, timeout=10).read()
    port = urllib.parse.urlsplit(address).port
    with socket.create_connection(("127.0.0.1", port)):  # browsers open connections before they ask anything
        watching.send_signal(signal.SIGINT)
        _, said = watching.communicate(timeout=20)
    assert watching.returncode == 0, said
