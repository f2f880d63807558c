"""Every study unfolds into runs that can be built, and names that are not there are refused."""

import hashlib
import json
from dataclasses import replace

import pytest

from beltrami.config import RECIPES, RunConfig, load_recipe, override
from beltrami.config.parse import departures
from beltrami.errors import DataError, UnknownName
from beltrami.lab.study import STUDIES, Method, Sampling, Study, plan, study_named
from beltrami.lab.study.plan import check_setups, groups
from beltrami.lab.study.run_key import key_of, setup_of


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_unfolds(name: str) -> None:
    study = STUDIES[name]
    tasks = plan(study, inits=1)
    assert {task.row for task in tasks} == {row.name for row in study.rows if row.recipe in RECIPES}
    assert len({(task.config.dataset, *task.identity) for task in tasks}) == len(tasks)
    for group in groups(tasks):
        assert len({setup_of(task.config) for task in group}) == 1
        assert group[0].config.data.protocol == study.draw_of(group[0].config.dataset, splits=None, inits=1).protocol
    assert len({row.name for row in study.rows}) == len(study.rows)


@pytest.mark.parametrize("name", STUDIES)
def test_pairs_and_curves_name_rows_of_their_study(name: str) -> None:
    study = STUDIES[name]
    rows = {row.name for row in study.rows}
    for quantity in study.quantities:
        assert {end for pair in quantity.pairs for end in (pair.one, pair.other)} <= rows
    assert (study.curve is not None) == any(row.at is not None for row in study.rows)
    assert all((row.at is None) == (row.series is None) for row in study.rows)


def test_default_draws_are_those_of_the_paper() -> None:
    assert STUDIES["planetoid"].draw == Sampling("planetoid", 1, 20)
    assert STUDIES["random"].draw == Sampling("digl", 100, 1)
    assert {row.name for row in STUDIES["planetoid"].rows} >= set(STUDIES["planetoid"].quantities[0].paper.rows)  # type: ignore[union-attr]
    assert {row.name for row in STUDIES["random"].rows} >= set(STUDIES["random"].quantities[0].paper.rows)  # type: ignore[union-attr]


def test_more_splits_and_seeds_only_add_runs() -> None:
    few, many = Sampling("digl", 3, 2), Sampling("digl", 5, 4)
    assert set(few.seeds()) < set(many.seeds())
    assert len(set(many.seeds())) == 20
    assert list(Sampling("planetoid", 1, 3).seeds()) == [(0, 0), (0, 1), (0, 2)]
    assert list(Sampling("digl", 3, 1).seeds()) == [(0, 0), (1, 1), (2, 2)]


def test_draws_of_nothing_and_of_a_fixed_split_are_refused() -> None:
    with pytest.raises(ValueError, match=r"`splits` and `inits` of at least 1; got 0, 1"):
        Sampling("digl", 0, 1)
    with pytest.raises(ValueError, match=r"'planetoid' has one split; got `splits` 3: ask for more `inits`"):
        plan(STUDIES["planetoid"], splits=3)


def test_a_fixed_split_stands_beside_random_ones() -> None:
    study = STUDIES["random"]
    assert study.draw_of("ogbn-arxiv", splits=7, inits=2) == Sampling("ogb", 1, 2)
    assert study.draw_of("cora", splits=7, inits=2) == Sampling("digl", 7, 2)


def test_configurations_are_those_of_the_recipe_and_the_row() -> None:
    (task,) = plan(STUDIES["steps"], datasets=["photo"], methods=["euler-0.5"], splits=1, settings=["train.epochs=9"])
    expected = load_recipe("blend", "photo", protocol="digl", seed=0)
    expected = override(expected, ["scheme.kind=constant", "scheme.solver=euler", "scheme.dt=0.5", "train.epochs=9"])
    assert task.config == expected


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"unknown study 'randon': did you mean 'random'\?"):
        study_named("randon")
    with pytest.raises(UnknownName, match=r"method of study 'random' 'blend-nn': did you mean 'blend-knn'\?"):
        plan(STUDIES["random"], methods=["blend-nn"])
    with pytest.raises(UnknownName, match=r"unknown dataset 'coora': did you mean 'cora'\?"):
        plan(STUDIES["random"], datasets=["coora"])
    with pytest.raises(UnknownName, match=r"unknown setting 'train.epoch'"):
        plan(STUDIES["random"], settings=["train.epoch=3"])


def test_methods_without_a_recipe_are_left_out_unless_asked_for() -> None:
    rows = (Method("here", "blend"), Method("not-yet", "no-such-recipe"))
    study = replace(STUDIES["random"], rows=rows)
    assert {task.row for task in plan(study, datasets=["cora"], splits=1)} == {"here"}
    with pytest.raises(UnknownName, match=r"'not-yet'"):
        plan(study, methods=["not-yet"])


def test_datasets_without_settings_are_left_out_unless_asked_for() -> None:
    study = replace(STUDIES["random"], rows=(Method("blend", "blend"),))
    assert "ogbn-arxiv" not in RECIPES["blend"]("cora").dataset
    unknown = not study.rows[0].knows("ogbn-arxiv")
    assert {task.config.dataset for task in plan(study, splits=1)} == set(study.datasets) - (
        {"ogbn-arxiv"} if unknown else set()
    )


def test_a_study_without_any_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Method, "knows", lambda self, dataset: False)
    with pytest.raises(ValueError, match=r"study 'random' has no recipe for any of cora"):
        plan(STUDIES["random"], datasets=["cora"])


def test_keys_tell_runs_apart_and_setups_tell_settings_apart() -> None:
    config = load_recipe("blend", "cora")
    other = replace(config, seed=1)
    elsewhere = replace(config, data=replace(config.data, split_seed=1))
    faster = override(config, ["train.lr=0.1"])
    assert len({key_of(each) for each in (config, other, elsewhere, faster)}) == 4
    assert setup_of(config) == setup_of(other) == setup_of(elsewhere)
    assert setup_of(config) != setup_of(faster)


def test_departures_are_the_whole_configuration() -> None:
    config = override(load_recipe("blend", "photo", seed=3), ["stencil.remesh=0.5"])
    found = departures(config)
    assert found["seed"] == 3
    assert found["stencil.remesh"] == 0.5
    again = override(
        RunConfig(dataset="photo", recipe="blend", scheme=config.scheme),
        [f"{name}={value}" for name, value in found.items()],
    )
    assert again == config


def test_the_key_of_a_line_can_be_told_from_the_line() -> None:
    (task,) = plan(STUDIES["steps"], datasets=["photo"], methods=["euler-0.5"], splits=1)
    line = task.line("failed")
    text = json.dumps({"dataset": line.dataset, "recipe": "blend", **line.settings}, sort_keys=True)
    assert line.key == hashlib.sha256(text.encode()).hexdigest()[:16] == task.identity[1]


def test_lines_say_how_many_configurations_were_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beltrami.config.recipe.catalogue.TRIED", {("blend", "photo"): 40})
    tasks = plan(STUDIES["random"], datasets=["photo", "cora"], methods=["blend"], splits=1)
    assert [task.line("failed").tried for task in tasks] == [40, None]


def test_runs_of_other_settings_are_not_added_to_a_cell() -> None:
    study: Study = STUDIES["random"]
    tasks = plan(study, datasets=["cora"], methods=["blend"], splits=1)
    others = plan(study, datasets=["cora"], methods=["blend"], splits=1, settings=["train.epochs=3"])
    held = [task.line("failed") for task in tasks]
    check_setups(tasks, held)
    with pytest.raises(DataError, match=r"runs of 'blend' on 'cora' with other settings"):
        check_setups(others, held)
