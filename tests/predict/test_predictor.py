"""The files of a predictor: a damaged one is refused in one sentence, and any folder name will do."""

from pathlib import Path

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
