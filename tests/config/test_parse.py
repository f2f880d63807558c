"""Settings are read strictly: what has another name or another type is refused where it stands."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from toy import small_config

from beltrami.config import RunConfig, override, parse, read_config, setting_names
from beltrami.errors import DataError, UnknownName

CONFIG = small_config()


def value_of(config: RunConfig, name: str) -> Any:
    found: Any = asdict(config)
    for part in name.split("."):
        found = found[part]
    return found


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("scheme.time=4", 4.0),
        ("scheme.time=4.5", 4.5),
        ("train.lr=1e-3", 1e-3),
        ("train.epochs=12", 12),
        ("scheme.dt=null", None),
        ("scheme.dt=None", None),
        ("scheme.dt=1", 1.0),
        ("scheme.backward=rk4", "rk4"),
        ("scheme.backward=null", None),
        ("flow.frozen=false", False),
        ("model.batch_norm=True", True),
        ("diffusivity.score=cosine", "cosine"),
        ("position.encoding=none", "none"),
        ("seed=7", 7),
        ("data.split_seed=7", 7),
        (" scheme.time = 4 ", 4.0),
        ("recipe=mine=yours", "mine=yours"),
    ],
)
def test_override_sets_the_value_in_its_own_type(assignment: str, expected: object) -> None:
    name = assignment.partition("=")[0].strip()
    found = value_of(override(CONFIG, [assignment]), name)
    assert found == expected
    assert type(found) is type(expected)


def test_override_changes_nothing_else() -> None:
    changed = override(CONFIG, ["scheme.time=4", "train.epochs=12"])
    differing = [name for name in setting_names() if value_of(changed, name) != value_of(CONFIG, name)]
    assert differing == ["scheme.time", "train.epochs"]
    assert override(CONFIG, []) == CONFIG


def test_last_override_of_a_name_holds() -> None:
    assert override(CONFIG, ["scheme.time=4", "scheme.time=5"]).scheme.time == 5


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("train.epochs=2.5", r"setting 'train.epochs' takes int; got 2.5"),
        ("train.epochs=many", r"setting 'train.epochs' takes int; got 'many'"),
        ("train.epochs=true", r"setting 'train.epochs' takes int; got True"),
        ("train.epochs=null", r"setting 'train.epochs' takes int; got None"),
        ("train.lr=fast", r"setting 'train.lr' takes float; got 'fast'"),
        ("train.lr=true", r"setting 'train.lr' takes float; got True"),
        ("flow.frozen=1", r"setting 'flow.frozen' takes bool; got 1"),
        ("flow.frozen=yes", r"setting 'flow.frozen' takes bool; got 'yes'"),
        ("diffusivity.score=3", r"setting 'diffusivity.score' takes str; got 3"),
        ("scheme.dt=small", r"setting 'scheme.dt' takes float or null; got 'small'"),
        ("scheme.backward=4", r"setting 'scheme.backward' takes str or null; got 4"),
        ("scheme.time", r"takes name=value, such as scheme.time=4; got 'scheme.time'"),
        ("=4", r"takes name=value, such as scheme.time=4; got '=4'"),
        ("", r"takes name=value"),
    ],
)
def test_value_of_another_type_is_refused(assignment: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        override(CONFIG, [assignment])


@pytest.mark.parametrize(
    ("assignment", "nearest"),
    [
        ("train.epoch=2", "train.epochs"),
        ("scheme.tme=2", "scheme.time"),
        ("sheme.time=2", "scheme.time"),
        ("Train.Epochs=2", "train.epochs"),
        ("sed=2", "seed"),
        ("scheme.time.late=2", "scheme.time"),
    ],
)
def test_unknown_setting_is_refused_with_the_nearest_name(assignment: str, nearest: str) -> None:
    with pytest.raises(UnknownName, match=rf"unknown setting .* did you mean '{nearest}'\?"):
        override(CONFIG, [assignment])


@pytest.mark.parametrize("group", ["scheme", "train", "data"])
def test_group_in_the_place_of_a_setting_is_refused(group: str) -> None:
    with pytest.raises(UnknownName, match=rf"unknown setting '{group}'.* Known: .*{group}\."):
        override(CONFIG, [f"{group}=4"])


def test_setting_names_are_the_leaves_of_the_tree() -> None:
    names = setting_names()
    assert len(names) == len(set(names))
    assert {"dataset", "seed", "scheme.time", "train.lr", "diffusivity.d_k"} <= set(names)
    assert not {"scheme", "train"} & set(names)
    for name in names:
        value_of(CONFIG, name)


def test_config_comes_back_from_json_as_it_was() -> None:
    config = override(CONFIG, ["scheme.dt=null", "flow.frozen=false", "diffusivity.d_k=2", "seed=9"])
    assert parse(RunConfig, json.loads(config.to_json())) == config


def test_settings_left_out_take_their_defaults() -> None:
    assert parse(RunConfig, {"dataset": "toy", "recipe": "mine"}) == RunConfig("toy", "mine")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"dataset": "toy", "recipe": "r", "schem": {}}, r"unknown setting 'schem': did you mean 'scheme'\?"),
        ({"dataset": "toy", "recipe": "r", "scheme": {"tim": 1}}, r"unknown setting 'scheme.tim': .*'scheme.time'"),
        ({"dataset": "toy", "recipe": "r", "scheme": 4}, r"setting 'scheme' must be a group of settings; got 4"),
        ({"dataset": "toy", "recipe": "r", "scheme": {"time": "4"}}, r"setting 'scheme.time' takes float; got '4'"),
        ([1, 2], r"setting 'configuration' must be a group of settings"),
    ],
)
def test_tree_that_does_not_fit_is_refused_where_it_stands(values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(RunConfig, values)


def test_config_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(CONFIG.to_json())
    assert read_config(tmp_path / "config.json") == CONFIG


@pytest.mark.parametrize(
    "content",
    [
        b"",
        CONFIG.to_json()[:200].encode(),
        b"\xff\xfe\x80",
        b"[]",
        b"null",
        b"{}",
        b'{"dataset": "toy"}',
        b'{"dataset": "toy", "recipe": "r", "model": {"layers": 3}}',
        b'{"dataset": "toy", "recipe": "r", "model": {"feat": "wide"}}',
    ],
)
def test_file_that_is_not_a_config_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(
        DataError, match=r"the configuration .* cannot be read \(.*\): train the run again\."
    ) as refusal:
        read_config(path)
    assert str(path) in str(refusal.value)


def test_missing_config_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no configuration at .*: is this the folder of a run\?"):
        read_config(tmp_path / "config.json")
