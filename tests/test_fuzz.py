"""Mutated files and random settings are answered with a value or with one sentence: a short run of the fuzzer."""

import json
import os
import time
import warnings
from pathlib import Path
from random import Random

import fuzz
import fuzz_readers
import fuzz_worker
import pytest
from fuzz_given_files import Reader
from fuzz_mutation import MUTATIONS, mutate
from fuzz_readers import READERS
from fuzz_worker import Worker, answer_of

from beltrami.errors import DataError

INPUTS, SETTINGS = 12 * len(READERS), 60


@pytest.mark.slow
def test_mutated_files_and_random_settings_are_answered_with_a_value_or_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("BELTRAMI_DATA", raising=False)  # the files of Planetoid are then made, not real
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    asked = ["--inputs", str(INPUTS), "--settings", str(SETTINGS), "--seed", "0", "--workers", "1"]
    code = fuzz.main([*asked, "--out", str(tmp_path / "fuzz.json"), "--keep", str(tmp_path / "kept")])
    found = json.loads((tmp_path / "fuzz.json").read_text())
    assert found["findings"] == []
    assert code == 0
    assert "0 findings" in capsys.readouterr().out
    readers = found["readers"]
    assert {name: entry["inputs"] for name, entry in readers.items()} == {**dict.fromkeys(READERS, 12), "settings": 60}
    assert all(readers[name]["answers"]["DataError"] for name in READERS)
    assert readers["settings"]["answers"]["value"] > 0
    assert readers["settings"]["answers"]["ValueError"] > 0


@pytest.mark.slow
def test_a_hang_and_a_crash_are_found_and_the_process_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz_worker, "SECONDS", 0.3)
    worker = Worker([], (time.sleep, os._exit, str))
    try:
        for call, kind in (((0, 60), "hang"), ((1, 3), "crash")):
            worker.ask(*call)
            assert worker.answer().kind == kind
        monkeypatch.setattr(fuzz_worker, "SECONDS", 30.0)
        worker.ask(2, 1.5)
        assert str(worker.answer()) == "1.5"
    finally:
        worker.stop()


def fail(error: BaseException) -> None:
    raise error


def test_answers_are_judged() -> None:
    def raise_memory_error() -> None:
        raise MemoryError

    assert answer_of(lambda: 1).kind == "value"
    assert answer_of(lambda: int("x")).kind == "raw error"
    assert answer_of(lambda: {}["x"]).kind == "raw error"  # type: ignore[index]
    assert answer_of(lambda: fail(DataError("it is damaged."))).kind == "raw error"  # not raised by the library
    assert answer_of(raise_memory_error).kind == "memory"
    assert answer_of(lambda: warnings.warn("x", UserWarning, stacklevel=1)).kind == "warning"


def test_errors_of_the_library_are_right_answers(tmp_path: Path) -> None:
    from beltrami.data.graph_reader import read_graph

    assert answer_of(lambda: read_graph(tmp_path / "nothing.csv")).kind == "DataError"
    assert answer_of(lambda: read_graph()).kind == "ValueError"


def test_output_that_an_error_leaves_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def read(folder: Path, out: Path) -> None:
        (out / "half").write_text("x")
        raise ValueError("x")

    monkeypatch.setattr(fuzz_readers, "READERS", {"half": Reader(lambda folder: None, read, {})})
    (tmp_path / "half").mkdir()
    assert fuzz_worker.try_file("half", None, tmp_path).kind == "partial output"


@pytest.mark.parametrize("kind", MUTATIONS)
def test_mutations_are_repeatable_and_take_any_content(kind: str) -> None:
    for content in (b"", b"x", b"1,2\n3,4\n", bytes(range(256))):
        for seed in range(40):
            assert mutate(content, b"other", kind, Random(seed)) == mutate(content, b"other", kind, Random(seed))
