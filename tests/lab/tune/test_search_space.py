"""Each space contains its recipe, and its points depend on seed, number and name alone."""

import math
from dataclasses import replace
from statistics import mean
from typing import Any

import pytest

from beltrami.config import RECIPES, RunConfig, check_settings, load_recipe, override, setting_names
from beltrami.config.recipe.baseline import BASELINE_RECIPES, ZOO
from beltrami.config.recipe.blend import BLEND
from beltrami.errors import UnknownName
from beltrami.lab.tune.search_space import (
    ABSENT,
    SPACES,
    Choice,
    Distribution,
    LogUniform,
    Space,
    Uniform,
    draw,
    space_of,
    value_of,
)

GRID = [k / 4000 for k in range(4000)]
DISTRIBUTIONS: list[Distribution] = [Uniform(0.2, 0.8), LogUniform(1e-4, 0.3), Choice("a", "b", True, 8)]
TUNABLE = [name for name in RECIPES if name not in (*ZOO, "paper", "paper-knn")]


def contains(drawn: Distribution, value: Any) -> bool:
    """Whether a distribution may draw a value."""
    if isinstance(drawn, Choice):
        return value in drawn.options
    assert isinstance(drawn, (Uniform, LogUniform))
    return bool(drawn.low <= value <= drawn.high)


def outside(space: Space, config: RunConfig) -> list[str]:
    """The settings whose value in a configuration is not in the space."""
    values = {name: value_of(config, name) for name in space}
    present = {name: value for name, value in values.items() if value is not ABSENT}
    return [name for name, value in present.items() if not contains(space[name], value)]


@pytest.mark.parametrize("drawn", DISTRIBUTIONS, ids=lambda each: type(each).__name__)
def test_every_drawn_value_is_possible(drawn: Distribution) -> None:
    assert all(contains(drawn, drawn.at(u)) for u in (*GRID, math.nextafter(1.0, 0.0)))


def test_values_are_distributed_as_stated() -> None:
    assert mean(Uniform(0.2, 0.8).at(u) for u in GRID) == pytest.approx(0.5, abs=1e-3)
    logs = [math.log10(LogUniform(1e-4, 1e-2).at(u)) for u in GRID]
    assert (min(logs), mean(logs), max(logs)) == pytest.approx((-4, -3, -2), abs=2e-3)
    drawn = [Choice(1, 2, 4, 8).at(u) for u in GRID]
    assert [drawn.count(option) for option in (1, 2, 4, 8)] == [1000] * 4


def test_drawn_numbers_have_four_digits() -> None:
    assert Uniform(0.0, 1.0).at(1 / 3) == 0.3333
    assert LogUniform(1.00001, 2.0).at(0.0) == 1.00001  # rounding does not leave the interval


def test_empty_distributions_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Uniform needs `low` below `high`; got 2, 1"):
        Uniform(2, 1)
    with pytest.raises(ValueError, match=r"LogUniform needs `low` above 0 and below `high`; got 0, 1"):
        LogUniform(0, 1)
    with pytest.raises(ValueError, match=r"Choice needs at least two options"):
        Choice("alone")


def test_points_do_not_depend_on_order_or_other_settings() -> None:
    space: Space = {"train.lr": LogUniform(1e-3, 1e-1), "model.feat": Choice(16, 32)}
    assert [draw(space, k, seed=0) for k in (2, 1)] == [draw(space, k, seed=0) for k in (1, 2)][::-1]
    wider = {"model.dropout": Uniform(0, 1), **space}
    assert all(draw(wider, k, seed=3).items() >= draw(space, k, seed=3).items() for k in range(9))
    drawn = {draw(space, k, seed=seed)["train.lr"] for k in range(50) for seed in range(2)}
    assert len(drawn) > 95
    assert draw(space, 1, seed=0)["train.lr"] == 0.01155  # on every machine


@pytest.mark.parametrize("name", TUNABLE)
def test_spaces_contain_the_recipe_on_every_dataset(name: str) -> None:
    for dataset in BLEND:
        if dataset.startswith("ogbn") and name in BASELINE_RECIPES:
            continue  # they have no settings for them
        config = load_recipe(name, dataset)
        space = space_of(config)
        assert outside(space, config) == [], dataset
        assert set(space) <= set(setting_names())
        assert space_of(replace(config, recipe=f"{name}-tuned")) == space


@pytest.mark.slow
@pytest.mark.parametrize("name", TUNABLE)
def test_every_point_is_a_configuration_that_can_be_built(name: str) -> None:
    for dataset in ("digits", "pubmed"):
        config = load_recipe(name, dataset)
        for number in range(8):
            settings = draw(space_of(config), number, seed=0)
            drawn = [f"{setting}={value}" for setting, value in settings.items()]
            point = override(config, drawn, skip_inapplicable=True)
            check_settings(point)
            assert all(value_of(point, setting) in (value, ABSENT) for setting, value in settings.items())


def test_every_recipe_but_those_of_the_zoo_and_the_paper_has_a_space() -> None:
    assert set(SPACES) == set(TUNABLE)
    with pytest.raises(UnknownName, match=r"unknown recipe to tune 'mine'"):
        space_of(replace(load_recipe("blend", "cora"), recipe="mine"))


def test_settings_outside_of_the_space_are_named() -> None:
    config = override(load_recipe("blend", "cora"), ["train.lr=3"])
    assert outside(space_of(config), config) == ["train.lr"]
    assert "model.pos" in space_of(config)
    assert "model.pos" not in space_of(load_recipe("blend", "photo"))
