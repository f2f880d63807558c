"""A configuration file is a recipe, and says how many others were tried before it."""

from dataclasses import replace
from pathlib import Path

import pytest

from beltrami.config import RunConfig, load_recipe, override
from beltrami.config.search_count import ON_DATASETS
from beltrami.errors import DataError, UnknownName
from beltrami.lab.study import STUDIES, plan
from beltrami.lab.study.run_key import departures, key_of, setup_of

TUNED = replace(
    override(load_recipe("blend", "cora"), ["train.lr=0.03", "scheme.time=9"]), recipe="blend-tuned", tried=40
)


def written(folder: Path, config: RunConfig = TUNED) -> str:
    path = folder / "best.json"
    path.write_text(config.to_json())
    return str(path)


def test_a_file_is_a_recipe_with_seeds_and_protocol_of_its_own(tmp_path: Path) -> None:
    name = written(tmp_path)
    assert load_recipe(name, "cora") == TUNED
    other = load_recipe(name, "cora", protocol="planetoid", seed=3, split_seed=5)
    assert (other.seed, other.data.split_seed, other.data.protocol, other.data.component) == (3, 5, "planetoid", "all")
    assert replace(other, seed=0, data=TUNED.data) == TUNED


def test_a_file_is_a_recipe_for_its_own_dataset_alone(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"unknown dataset for recipe '.*best.json' 'photo': .*Known: cora"):
        load_recipe(written(tmp_path), "photo")
    with pytest.raises(DataError, match=r"no configuration at .*none.json"):
        load_recipe(str(tmp_path / "none.json"), "cora")


def test_how_many_were_tried_is_no_setting_of_a_run() -> None:
    alone = replace(TUNED, tried=None)
    assert key_of(alone) == key_of(TUNED)
    assert setup_of(alone) == setup_of(TUNED)
    assert departures(alone) == departures(TUNED)


def test_a_file_is_a_row_of_a_study_whose_lines_say_how_many_were_tried(tmp_path: Path) -> None:
    tasks = plan(STUDIES["random"], datasets=["cora"], methods=["blend", written(tmp_path)], splits=2)
    lines = [task.record("failed") for task in tasks]
    assert [(line.method, line.tried) for line in lines] == [("blend", ON_DATASETS["cora"])] * 2 + [("best", 40)] * 2
    assert [line.settings["train.lr"] for line in lines[2:]] == [0.03, 0.03]
    elsewhere = plan(STUDIES["random"], methods=[written(tmp_path)], splits=1)
    assert {task.config.dataset for task in elsewhere} == {"cora"}
