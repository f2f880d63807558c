"""Configurations of the first release are converted exactly, or refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from beltrami.config import RECIPES, RunConfig, check_settings, load_recipe, override, parse, read_config, setting_names
from beltrami.config.convert import FIRST, RENAMED, convert
from beltrami.config.parser import departures
from beltrami.config.recipe.equal_budget import EQUAL_BUDGET
from beltrami.errors import DataError

RECORDED = json.loads((Path(__file__).parent / "first_release_recipes.json").read_text())
STUDIES = Path(__file__).parents[2] / "results" / "study"


def converted(settings: dict[str, Any], **names: str) -> RunConfig:
    return parse(RunConfig, {**convert(settings), "dataset": "cora", "recipe": "mine", **names})


def test_every_recipe_of_the_first_release_is_todays_recipe() -> None:
    assert {name.split()[0] for name in RECORDED} == set(RECIPES) - {
        "paper",
        "paper-knn",
        "blend-plain",
        "blend-distilled",
    }
    for name, datasets in RECORDED.items():
        recipe, _, protocol = name.partition(" ")
        common = datasets.pop("every dataset")
        for dataset, settings in datasets.items():
            found = converted({**common, **settings}, dataset=dataset, recipe=recipe)
            if searched := EQUAL_BUDGET.get((recipe.removesuffix("-ppr"), dataset, False)):
                found = replace(override(found, searched.settings), tried=searched.tried)
            assert found == load_recipe(recipe, dataset, protocol=protocol or None), (name, dataset)


@pytest.mark.slow
@pytest.mark.skipif(not STUDIES.exists(), reason="the results are in the repository, not in the package")
def test_the_settings_of_all_recorded_runs_convert() -> None:
    seen = set()
    for path in STUDIES.glob("*.jsonl"):
        for record in map(json.loads, path.read_text().splitlines()):
            settings = {name: value for name, value in record["settings"].items() if not name.endswith("seed")}
            if "schema" not in record and repr(settings) not in seen:
                seen.add(repr(settings))
                check_settings(converted(settings, dataset=record["dataset"]))
    assert len(seen) > 100


def test_nested_and_flat_settings_convert_alike() -> None:
    flat = {"position.encoding": "ppr", "model.pos": 8, "train.adopt": 3, "seed": 4}
    nested = {"position": {"encoding": "ppr"}, "model": {"pos": 8}, "train": {"adopt": 3}, "seed": 4}
    assert convert(flat) == convert(nested)
    found = departures(converted(flat))
    assert (found["position.kind"], found["model.pos"], found["train.self_training"], found["seed"]) == ("ppr", 8, 3, 4)


@pytest.mark.parametrize(
    ("first", "today"),
    [
        ({"position.encoding": "deepwalk", "position.tuned": True}, {"position.walk_length": None}),
        ({"position.file": "u", "position.digest": "d"}, {"position.kind": "file", "position.path": "u"}),
        ({"stencil.file": "mesh", "stencil.k": 3}, {"stencil.kind": "file", "stencil.path": "mesh"}),
        ({"stencil.kind": "knn", "stencil.k": 3, "stencil.alike": 0.5}, {"stencil.kind": "knn", "stencil.k": 3}),
        ({"stencil.near": 5}, {"stencil.add.kind": "neighbours", "stencil.add.k": 5}),
        ({"model.pos": 8}, {}),  # the width of no positions
        ({"diffusivity.score": "angle", "diffusivity.width": 5}, {"diffusivity.kind": "scalar-cosine"}),
        ({"diffusivity.start": "constant"}, {"diffusivity.start.kind": "constant"}),
        ({"flow.frozen": False, "flow.storage": "float16"}, {"flow.kind": "live", "flow.storage": "float16"}),
        ({"flow.frozen": False, "flow.positions": "hyperbolic"}, {"flow.kind": "hyperbolic"}),
        ({"scheme.solver": "implicit-euler", "scheme.dt": 1.0}, {"scheme.kind": "implicit", "scheme.rtol": 1e-4}),
        ({"scheme.solver": "torchdiffeq:rk4", "scheme.dt": 1.0}, {"scheme.method": "rk4", "scheme.step_size": 1.0}),
        (
            {"scheme.adjoint": "continuous", "scheme.backward": "rk4", "scheme.backward_dt": 0.5},
            {"scheme.adjoint.kind": "continuous-constant", "scheme.adjoint.solver": "rk4", "scheme.adjoint.dt": 0.5},
        ),
        (
            {"scheme.adjoint": "continuous", "scheme.backward": "heun"},
            {"scheme.adjoint.kind": "continuous-adaptive", "scheme.adjoint.rtol": 1e-3},
        ),
        ({"model.kind": "gcn", "diffusivity.heads": 4, "scheme.time": 9.0}, {"flow.kind": "none"}),
        ({"model.kind": "monet-flow", "baseline.kernels": 4}, {"model.kernels": 4}),
    ],
    ids=lambda value: " ".join(value),
)
def test_settings_convert_to_those_of_the_kind(first: dict[str, Any], today: dict[str, Any]) -> None:
    found = departures(converted(first))
    assert {name: found.get(name) for name in today} == today
    plain = set(departures(converted({"model.kind": first.get("model.kind", "blend")})))
    assert today or set(found) == plain


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ({"model.layers": 3}, r"unknown setting of the first release 'model.layers'"),
        ({"modl": {}}, r"unknown setting of the first release 'modl': did you mean 'model'"),
        ({"model": 3}, r"`model` must be a group of settings; got 3"),
        ({"model.kind": "gcm"}, r"unknown model.kind 'gcm': did you mean 'gcn'"),
        ({"train.passes": 2}, r"`train.passes` above 1 has no counterpart"),
        ({"model.kind": "gat-flow", "stencil.alike": 1.0}, r"have no counterpart for `model.kind=gat-flow`"),
        ({"flow.positions": "hyperbolic"}, r"`flow.frozen` goes neither with"),
        ({"scheme.solver": "exponential", "scheme.dt": 1.0}, r"`scheme.solver=exponential` goes neither with"),
        ({"scheme.solver": "rk4"}, r"unknown scheme.solver 'rk4'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_settings_without_a_counterpart_are_refused_in_one_line(first: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as refusal:
        converted(first)
    assert "\n" not in str(refusal.value)


def test_new_names_of_settings_exist_and_old_ones_do_not() -> None:
    names = set(setting_names())
    assert set(RENAMED.values()) - {"model.heads"} <= names
    assert not names & set(RENAMED)
    assert {name.split(".")[0] for name in RENAMED} <= set(FIRST)


def test_file_of_the_first_release_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"dataset": "cora", "recipe": "gcn", "model": {"kind": "gcn"}, "tried": None}))
    assert read_config(path).model.kind == "gcn"
    path.write_text(json.dumps({"dataset": "cora", "recipe": "gcn", "model": {"kind": "gnc"}}))
    with pytest.raises(DataError, match=r"config.json cannot be read \(unknown"):
        read_config(path)


@pytest.mark.parametrize("settings", [{"scheme.solver": None}, {"train.passes": []}, {"stencil.kind": {}}])
def test_values_of_other_types_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="has a value of another type"):
        convert({"scheme.dt": 1.0, **settings})
