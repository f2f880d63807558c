"""Settings are parsed strictly: an unknown name, a wrong type or a setting of another kind is refused."""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from toy import small_config

from beltrami.config import RunConfig, load_recipe, override, parse, read_config, setting_names
from beltrami.config.parser import departures
from beltrami.errors import DataError, UnknownName

CONFIG = small_config()
BARE: dict[str, Any] = {"dataset": "toy", "recipe": "r", "scheme": {"kind": "none"}}


def value_of(config: RunConfig, name: str) -> Any:
    found: Any = asdict(config)
    for part in name.split("."):
        found = found[part]
    return found


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("scheme.time=4", 4.0),
        ("train.lr=1e-3", 1e-3),
        ("train.epochs=12", 12),
        ("stencil.remesh=null", None),
        ("stencil.remesh=None", None),
        ("stencil.remesh=1", 1.0),
        ("model.batch_norm=True", True),
        ("diffusivity.kind=cosine", "cosine"),
        ("position.kind=none", "none"),
        ("train.cuda_graph=false", False),
        ("data.split_seed=7", 7),
        (" scheme.time = 4 ", 4.0),
        ("data.protocol=mine=yours", "mine=yours"),
    ],
)
def test_override_sets_the_value_in_its_type(assignment: str, expected: object) -> None:
    name = assignment.partition("=")[0].strip()
    found = value_of(override(CONFIG, [assignment]), name)
    assert found == expected
    assert type(found) is type(expected)


def test_override_changes_nothing_else() -> None:
    changed = override(CONFIG, ["scheme.time=4", "train.epochs=12"])
    expected = departures(CONFIG) | {"scheme.time": 4.0, "train.epochs": 12}
    assert departures(changed) == expected
    assert override(CONFIG, []) == CONFIG


def test_last_assignment_of_a_name_holds() -> None:
    assert value_of(override(CONFIG, ["scheme.time=4", "scheme.time=5"]), "scheme.time") == 5


def test_a_change_of_kind_keeps_fields_of_the_same_name_and_resets_the_others() -> None:
    start = override(CONFIG, ["diffusivity.heads=4", "diffusivity.d_k=3", "diffusivity.over=both"])
    cosine = override(start, ["diffusivity.kind=cosine"])
    assert asdict(cosine.diffusivity) == {
        "kind": "cosine",
        "width": 8,
        "heads": 4,
        "link": "softmax",
        "over": "both",
        "start": {"kind": "xavier"},
        "bias": False,
    }
    uniform = override(start, ["diffusivity.kind=uniform"])
    assert asdict(uniform.diffusivity) == {"kind": "uniform", "over": "both"}
    again = override(uniform, ["diffusivity.kind=scaled-dot"])
    assert departures(again)["diffusivity.over"] == "both"
    assert "diffusivity.heads" not in departures(again)


def test_kinds_are_set_before_the_other_settings_and_outer_before_inner_ones() -> None:
    settings = ["flow.psi.length=2", "flow.psi.kind=gauss", "diffusivity.kind=none", "flow.kind=polyakov"]
    assert asdict(override(CONFIG, settings).flow)["psi"] == {"kind": "gauss", "length": 2.0}


def test_a_field_without_a_default_must_be_given() -> None:
    with pytest.raises(ValueError, match=r"`scheme.rtol` must be given for `scheme.kind=adaptive`: it has no default"):
        override(CONFIG, ["scheme.kind=adaptive", "scheme.solver=dopri5"])
    with pytest.raises(ValueError, match=r"`flow.psi.kind` must be given: one of constant, gauss"):
        override(CONFIG, ["flow.kind=polyakov", "flow.psi.length=2"])
    with pytest.raises(ValueError, match=r"`flow.psi` must be given for `flow.kind=polyakov`"):
        override(CONFIG, ["flow.kind=polyakov"])


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("train.epochs=2.5", r"`train.epochs` takes int; got 2.5"),
        ("train.epochs=many", r"`train.epochs` takes int; got 'many'"),
        ("train.epochs=true", r"`train.epochs` takes int; got True"),
        ("train.epochs=null", r"`train.epochs` takes int; got None"),
        ("train.lr=fast", r"`train.lr` takes float; got 'fast'"),
        ("train.lr=true", r"`train.lr` takes float; got True"),
        ("flow.source=1", r"`flow.source` takes bool; got 1"),
        ("stencil.remesh=small", r"`stencil.remesh` takes float or null; got 'small'"),
        ("data.protocol=4", r"`data.protocol` takes str; got 4"),
        ("scheme.time", r"takes name=value, such as scheme.time=4; got 'scheme.time'"),
        ("=4", r"takes name=value, such as scheme.time=4; got '=4'"),
        ("", r"takes name=value"),
    ],
)
def test_value_of_another_type_is_refused(assignment: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        override(CONFIG, [assignment])


@pytest.mark.parametrize(
    ("setting", "name", "nearest"),
    [
        ("scheme.solver=dopri", "scheme.solver", "dopri5"),
        ("scheme.adjoint.kind=continous", "scheme.adjoint.kind", "continuous"),
        ("diffusivity.kind=scaleddot", "diffusivity.kind", "scaled-dot"),
        ("diffusivity.link=softmx", "diffusivity.link", "softmax"),
        ("diffusivity.start.kind=xaver", "diffusivity.start.kind", "xavier"),
        ("train.optimiser=adamx", "train.optimiser", "adamax"),
        ("stencil.kind=treshold", "stencil.kind", "threshold"),
        ("position.kind=pp", "position.kind", "ppr"),
        ("model.kind=gnc", "model.kind", "gcn"),
        ("data.component=larges", "data.component", "largest"),
        ("data.features=row", "data.features", "rows"),
    ],
)
def test_unknown_choice_is_refused_with_the_nearest(setting: str, name: str, nearest: str) -> None:
    with pytest.raises(UnknownName, match=rf"unknown {name} .*: did you mean '{nearest}'\?"):
        override(CONFIG, [setting])


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


def test_setting_of_the_first_release_is_refused_with_its_name_of_today() -> None:
    with pytest.raises(ValueError, match=r"unknown setting 'train.adopt': it is called 'train.self_training' now"):
        override(CONFIG, ["train.adopt=3"])


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("stencil.radius=3", r"`stencil.radius` is a setting of `stencil.kind=radius`, and here `stencil.kind=keep`"),
        ("stencil.k=3", r"`stencil.k` is a setting of `stencil.kind=digl or knn`"),
        ("model.kernels=9", r"`model.kernels` is a setting of `model.kind=monet-flow or monet`"),
        ("position.walk_length=7", r"`position.walk_length` is a setting of `position.kind=deepwalk`"),
        ("train.consistency.weight=1", r"`train.consistency.kind=squared`, and here `train.consistency.kind=none`"),
    ],
)
def test_setting_of_another_kind_is_refused_with_the_kinds_that_have_it(assignment: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        override(CONFIG, [assignment])
    assert override(CONFIG, [assignment], skip_inapplicable=True) == CONFIG


@pytest.mark.parametrize("group", ["scheme", "train", "data"])
def test_group_in_the_place_of_a_setting_is_refused(group: str) -> None:
    with pytest.raises(UnknownName, match=rf"unknown setting '{group}'.* Known: .*{group}\."):
        override(CONFIG, [f"{group}=4"])


def test_setting_names_are_those_of_all_kinds() -> None:
    names = setting_names()
    assert len(names) == len(set(names))
    assert {"dataset", "seed", "scheme.kind", "scheme.dt", "train.lr", "diffusivity.d_k", "model.steps"} <= set(names)
    assert not {"scheme", "train", "train.time_grid"} & set(names)


def test_departures_are_enough_to_build_the_configuration_again() -> None:
    for name in ("blend", "gat", "gat-flow", "polyakov"):
        config = load_recipe(name, "cora", seed=3)
        plain = RunConfig(dataset="cora", recipe=name, scheme=config.scheme)
        again = override(plain, [f"{each}={value}" for each, value in departures(config).items()])
        assert again == replace(config, tried=None)


def test_configuration_comes_back_from_json_as_it_was() -> None:
    config = override(CONFIG, ["flow.kind=live", "diffusivity.d_k=2", "seed=9"])
    values = json.loads(config.to_json())
    assert values["schema"] == 2
    assert parse(RunConfig, values) == config


def test_settings_left_out_take_their_defaults() -> None:
    assert departures(parse(RunConfig, BARE)) == {"scheme.kind": "none"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({**BARE, "schem": {}}, r"unknown name 'schem': did you mean 'scheme'\?"),
        ({**BARE, "train": {"epoch": 1}}, r"unknown name 'train.epoch': did you mean 'train.epochs'"),
        ({**BARE, "train": 4}, r"`train` must be a group of names and values; got 4"),
        ({**BARE, "train": {"epochs": "4"}}, r"`train.epochs` takes int; got '4'"),
        ({**BARE, "scheme": {"time": 4}}, r"`scheme.kind` must be given: one of none, exponential"),
        ({**BARE, "stencil": {"kind": "keep", "k": 4}}, r"unknown name 'stencil.k'"),
        ({"dataset": "toy", "scheme": {"kind": "none"}}, r"`recipe` must be given: it has no default"),
        ({**BARE, "schema": 3}, r"its schema is 3, and this release reads schema 2"),
        ([1, 2], r"`the file` must be a group of names and values"),
    ],
)
def test_tree_that_does_not_fit_is_refused_with_the_dotted_name(values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(RunConfig, values)


@dataclass(frozen=True)
class Sample:
    """A record with every type of field that files hold."""

    name: str
    numbers: list[float | None]
    counts: dict[str, int] = field(default_factory=dict)
    also: dict[str, Any] | None = None


def test_records_are_parsed_by_the_same_parser() -> None:
    values = {"schema": 2, "name": "a", "numbers": [1, None], "counts": {"x": 3}, "also": {"y": [None, "z"]}}
    assert parse(Sample, values) == Sample("a", [1.0, None], {"x": 3}, {"y": [None, "z"]})
    for wrong, message in (
        ({"numbers": ["b"]}, r"`numbers.0` takes float or null; got 'b'"),
        ({"numbers": 3}, r"`numbers` takes list"),
        ({"counts": {"x": 1.5}}, r"`counts.x` takes int; got 1.5"),
        ({"also": 3}, r"`also` takes dict"),
        ({"other": 3}, r"unknown name 'other'"),
    ):
        with pytest.raises(ValueError, match=message):
            parse(Sample, {**values, **wrong})


def test_configuration_file_is_read_as_it_was_written(tmp_path: Path) -> None:
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
        b'{"schema": 2, "dataset": "toy"}',
        b'{"dataset": "toy", "recipe": "r", "model": {"layers": 3}}',
        b'{"dataset": "toy", "recipe": "r", "model": {"feat": "wide"}}',
    ],
)
def test_file_that_is_not_a_configuration_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(
        DataError, match=r"the configuration .* cannot be read \(.*\): train the run again\."
    ) as refusal:
        read_config(path)
    assert str(path) in str(refusal.value)


def test_missing_configuration_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no configuration at .*: is this the folder of a finished run\?"):
        read_config(tmp_path / "config.json")


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("dataset=cora", "`dataset` is no setting: name the dataset as an argument"),
        ("recipe=mine", "`recipe` is no setting: choose it with `--recipe`"),
        ("tried=-4", "`tried` is no setting: it records how many"),
        ("seed=-1", r"`seed` must be from 0 to 2\*\*32 - 1; got -1"),
        ("data.split_seed=-1", r"`data.split_seed` must be from 0 to 2\*\*32 - 1; got -1"),
    ],
)
def test_what_is_no_setting_and_negative_seeds_are_refused(assignment: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        override(load_recipe("blend", "digits"), [assignment])


def test_a_count_of_trials_below_zero_in_a_file_is_refused() -> None:
    with pytest.raises(ValueError, match="`tried` must be at least 0"):
        parse(RunConfig, asdict(load_recipe("blend", "digits")) | {"tried": -4})


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"flow": {"kind": ["live"]}}, r"unknown flow\.kind"),
        ({"seed": 10**30}, "`seed` takes int of 64 bits|`seed` must be from 0"),
        ({"dataset": "\ud800"}, "`dataset` (holds a character that is no text|must be)"),
        ({"train": {"weight_decay": 10**400}}, "`train.weight_decay` takes float"),
    ],
)
def test_values_that_python_cannot_take_as_they_are_are_refused(change: dict[str, Any], match: str) -> None:
    tree = asdict(small_config())
    for name, value in change.items():
        tree[name] = tree[name] | value if isinstance(value, dict) else value
    with pytest.raises(ValueError, match=match):
        parse(RunConfig, tree)
