"""The files of a predictor: a damaged one is refused in one sentence, and any folder name will do."""

import json
from pathlib import Path
from typing import Any

import pytest
from own_graph import fit, two_groups

from beltrami.arguments import as_name
from beltrami.errors import DataError
from beltrami.predict.predictor import Predictor


@pytest.mark.parametrize("text", ["", '{"schema": 2', "[]"])
def test_a_damaged_predictor_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "predictor.json").write_text(text)
    with pytest.raises(DataError, match=r"predictor\.json cannot be read .*: train again"):
        Predictor.load(tmp_path)


@pytest.mark.parametrize("text", ['{"schema": 1}', "{}"])
def test_a_predictor_of_another_schema_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "predictor.json").write_text(text)
    with pytest.raises(DataError, match=r"schema .*this version reads 2"):
        Predictor.load(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["2024", "null", "a=b [c]"])
def test_the_name_of_a_folder_may_look_like_a_value(tmp_path: Path, name: str) -> None:
    predictor = fit(two_groups().write(tmp_path / name))
    predictor.save(tmp_path / "run")
    loaded = Predictor.load(tmp_path / "run")
    assert loaded.graph.name == predictor.graph.name
    assert as_name(name).rstrip("-") in loaded.ensemble.config.dataset


@pytest.mark.slow
def test_values_that_a_predictor_cannot_have_are_refused(tmp_path: Path) -> None:
    fit(two_groups().write(tmp_path / "graph")).save(tmp_path)
    whole = json.loads((tmp_path / "predictor.json").read_text())
    calibration = whole["calibration"]
    changes: dict[str, dict[str, object]] = {
        r"between 0 and \d+": {"times": [1e30] * len(whole["times"])},
        r"`times.0` takes float; got 'x'": {"times": ["x"]},
        "a time, a temperature or a scale is no positive number": {"calibration": calibration | {"temperature": 0.0}},
        "must be finite": {"preprocessing": whole["preprocessing"] | {"numbers": {**_numbers(whole), "size": 1e999}}},
        r"the graph has \d features, not \d": {"preprocessing": whole["preprocessing"] | {"nodes": ["a"]}},
        "Exceeds the limit": {"names": ["cat", 0]},
    }
    for match, change in changes.items():
        text = json.dumps(whole | change).replace('["cat", 0]', f'["cat", {"1" * 5000}]')
        (tmp_path / "predictor.json").write_text(text)
        with pytest.raises(DataError, match=rf"predictor\.json cannot be read .*{match}"):
            Predictor.load(tmp_path)


def _numbers(facts: dict[str, Any]) -> dict[str, object]:
    found: dict[str, object] = facts["preprocessing"]["numbers"]
    return found
