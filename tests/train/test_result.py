"""A result survives the journey to its file and back; a file that is not one is told apart in a sentence."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch

import beltrami
from beltrami.errors import DataError
from beltrami.train import RunResult, versions, write_atomically

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
)


def test_result_comes_back_from_its_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_atomically(path, RESULT.to_json().encode())
    assert RunResult.read(path) == RESULT


def test_a_result_says_how_many_configurations_were_tried_and_an_older_one_need_not(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(replace(RESULT, tried=40).to_json())
    assert RunResult.read(path).tried == 40
    path.write_text(without("tried"))
    assert RunResult.read(path) == RESULT
    path.write_text(altered(tried="many"))
    with pytest.raises(DataError, match="of another type: tried"):
        RunResult.read(path)


def test_whole_numbers_serve_as_floats(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(replace(RESULT, test_accuracy=80).to_json())
    assert RunResult.read(path).test_accuracy == 80


def test_versions_are_those_in_use() -> None:
    assert versions()["beltrami"] == beltrami.__version__
    assert versions()["torch"] == torch.__version__


def altered(**changes: Any) -> str:
    return json.dumps({**asdict(RESULT), **changes})


def without(name: str) -> str:
    return json.dumps({key: value for key, value in asdict(RESULT).items() if key != name})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"cannot be read \(Expecting value"),
        (RESULT.to_json()[:100], r"cannot be read \("),
        ("\x00\x01 not json", r"cannot be read \("),
        ("[1, 2]", r"is not one of ours \(missing or foreign: .*test_accuracy"),
        ("null", r"is not one of ours"),
        ('{"accuracy": 99}', r"is not one of ours \(missing or foreign: accuracy, .*test_accuracy"),
        (without("best_time"), r"is not one of ours \(missing or foreign: best_time\)"),
        (altered(loss=1.0), r"is not one of ours \(missing or foreign: loss\)"),
        (altered(split=None), r"is not one of ours \(of another type: split\)"),
        (altered(best_time="late", seed=1.5), r"is not one of ours \(of another type: seed, best_time\)"),
        (altered(epochs=True), r"is not one of ours \(of another type: epochs\)"),
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
    with pytest.raises(DataError, match=r"no result file at .*: was the run finished\?"):
        RunResult.read(tmp_path / "result.json")


def test_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot be read"):
        RunResult.read(tmp_path)
