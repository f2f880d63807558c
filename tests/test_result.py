"""Results are written and read back; a file that is not a result is refused in one sentence."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch

import beltrami
from beltrami.errors import DataError
from beltrami.result import RunResult, versions
from beltrami.train import write_atomically

RESULT = RunResult(
    dataset="cora",
    recipe="blend",
    seed=3,
    split={"protocol": "digl", "seed": 3, "hash": "0123456789abcdef"},
    val_accuracy=81.3,
    test_accuracy=80.00000000000001,
    best_time=18.29,
    best_epoch=61,
    epochs=100,
    train_seconds=12.5,
    evaluations={"forward": 7600, "backward": 0},
    parameters=100_000,
    attention_spread=0.25,
    device="cpu",
    versions=versions(),
    per_class_accuracy=[80.0, None],
)


def test_result_comes_back_from_its_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_atomically(path, RESULT.to_json().encode())
    assert RunResult.read(path) == RESULT


def test_a_result_of_the_first_release_is_read(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(replace(RESULT, tried=40).to_json())
    assert RunResult.read(path).tried == 40
    assert json.loads(path.read_text())["schema"] == 2
    path.write_text(without("tried", "per_class_accuracy"))
    assert RunResult.read(path) == replace(RESULT, per_class_accuracy=[])


def test_whole_numbers_serve_as_floats(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(replace(RESULT, test_accuracy=80).to_json())
    assert RunResult.read(path).test_accuracy == 80


def test_versions_are_those_in_use() -> None:
    assert versions()["beltrami"] == beltrami.__version__
    assert versions()["torch"] == torch.__version__


def altered(**changes: Any) -> str:
    return json.dumps({**asdict(RESULT), **changes})


def without(*names: str) -> str:
    return json.dumps({key: value for key, value in asdict(RESULT).items() if key not in names})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"cannot be read \(Expecting value"),
        (RESULT.to_json()[:100], r"cannot be read \("),
        ("\x00\x01 not json", r"cannot be read \("),
        ("[1, 2]", r"cannot be read \(`the file` must be a group of names and values"),
        ("null", r"cannot be read"),
        ('{"accuracy": 99}', r"cannot be read \(unknown name 'accuracy'"),
        (without("best_time"), r"cannot be read \(`best_time` must be given"),
        (altered(loss=1.0), r"cannot be read \(unknown name 'loss'"),
        (altered(split=None), r"cannot be read \(`split` takes dict; got None"),
        (altered(seed=1.5), r"cannot be read \(`seed` takes int; got 1.5"),
        (altered(epochs=True), r"cannot be read \(`epochs` takes int; got True"),
        (altered(tried="many"), r"cannot be read \(`tried` takes int or null; got 'many'"),
        (altered(schema=1), r"cannot be read \(its schema is 1"),
    ],
)
def test_file_that_is_not_a_result_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(content)
    with pytest.raises(DataError, match=message) as refusal:
        RunResult.read(path)
    assert str(path) in str(refusal.value)
    assert str(refusal.value).endswith("train the run again.")


def test_file_of_other_bytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(b"\xff\xfe\x80")
    with pytest.raises(DataError, match=r"cannot be read"):
        RunResult.read(path)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no result file at .*: is this the folder of a finished run\?"):
        RunResult.read(tmp_path / "result.json")


def test_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot be read"):
        RunResult.read(tmp_path)


def test_the_number_of_threads_is_recorded() -> None:
    assert versions()["threads"] == str(torch.get_num_threads())
