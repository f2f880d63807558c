"""A search is data: its trials do not depend on who runs them, and the best of them is a recipe."""

from dataclasses import replace
from pathlib import Path

import pytest

from beltrami.config import load_recipe, override
from beltrami.config.build_evolution import terminal_time
from beltrami.config.parser import departures
from beltrami.errors import DataError, UnknownName
from beltrami.lab.study.planning import Sampling
from beltrami.lab.study.record import Record, RecordLog
from beltrami.lab.tune.search import Search, TrialProgress, ranking, search_for

SEARCH = search_for("digits", "blend", splits=2, settings=["train.epochs=30"])


def over(number: int, validation: float, *, search: Search = SEARCH, stopped: bool = False) -> Record:
    return search.record(
        number, TrialProgress((50.0, validation), 1.5, None if stopped else validation), stopped=stopped
    )


def failed(number: int) -> Record:
    return SEARCH.record(number, TrialProgress((99.0,), 1.0), error="the loss became nan")


@pytest.mark.slow
def test_trial_0_is_the_recipe_and_the_others_are_points_of_its_space() -> None:
    base = override(load_recipe("blend", "digits"), ["train.epochs=30"])
    assert SEARCH.config(0) == base
    for number in range(1, 30):
        config = SEARCH.config(number)
        assert config.train.epochs == 30
        changed = {name for name, value in departures(config).items() if departures(base).get(name) != value}
        assert changed <= set(SEARCH.space)
    assert len({str(SEARCH.config(number)) for number in range(30)}) == 30
    assert replace(SEARCH, seed=1).config(3) != SEARCH.config(3) == replace(SEARCH).config(3)


def test_fixed_settings_are_not_searched() -> None:
    search = search_for("digits", "blend", splits=1, settings=["train.lr=0.02", "scheme.time = 3"])
    drawn = [search.config(number) for number in range(9)]
    assert {(config.train.lr, terminal_time(config.scheme)) for config in drawn} == {(0.02, 3.0)}
    free = search_for("digits", "blend", splits=1)
    assert [config.model for config in drawn] == [free.config(number).model for number in range(9)]


def test_a_protocol_with_one_split_varies_the_initial_weights() -> None:
    assert SEARCH.sampling == Sampling("shchur", 2, 1)
    assert search_for("cora", "blend", protocol="planetoid", splits=3).sampling == Sampling("planetoid", 1, 3)
    seeds = [(config.data.split_seed, config.seed) for config in SEARCH.sampling.configs(SEARCH.config(4))]
    assert seeds == [(0, 0), (1, 1)]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownName, match=r"unknown recipe 'blnd': did you mean 'blend'\?"):
        search_for("digits", "blnd", splits=1)
    with pytest.raises(ValueError, match=r"`splits` and `inits` of at least 1; got 0"):
        search_for("digits", "blend", splits=0)
    with pytest.raises(UnknownName, match=r"unknown setting 'train.epoch'"):
        search_for("digits", "blend", splits=1, settings=["train.epoch=3"])


def test_a_record_holds_the_settings_of_a_trial_and_how_it_ended(tmp_path: Path) -> None:
    records = [over(3, 80.0, stopped=True), failed(4)]
    with RecordLog(tmp_path / "trials.jsonl", resume=False) as log:
        for record in records:
            log.append(record)
    with RecordLog(tmp_path / "trials.jsonl", resume=True) as log:
        assert log.records == records
    assert records[0].settings == departures(SEARCH.config(3))
    assert records[0].extra == {
        "validation": 80.0,
        "by_epoch": [50.0, 80.0],
        "stopped": True,
        "seconds": 1.5,
        "runs": [[0, 0], [1, 1]],
    }
    assert (records[1].error, records[1].extra["by_epoch"]) == ("the loss became nan", [99.0])


def test_trials_with_a_result_are_not_repeated_and_failed_ones_are() -> None:
    assert SEARCH.pending(4, []) == [0, 1, 2, 3]
    records = [over(1, 80.0), failed(2), over(3, 70.0, stopped=True)]
    assert SEARCH.pending(5, records) == [0, 2, 4]
    assert SEARCH.pending(5, [*records, over(2, 60.0)]) == [0, 4]
    assert SEARCH.pending(2, records) == [0]


@pytest.mark.parametrize(
    "other",
    [
        replace(SEARCH, seed=1),
        search_for("digits", "blend", splits=3, settings=["train.epochs=30"]),
        search_for("digits", "blend", splits=2, settings=["train.epochs=31"]),
        search_for("digits", "uniform", splits=2, settings=["train.epochs=30"]),
    ],
    ids=["seed", "splits", "settings", "recipe"],
)
def test_records_of_another_search_are_refused(other: Search) -> None:
    with pytest.raises(DataError, match=r"holds the trial '3' of another search"):
        SEARCH.pending(5, [over(1, 80.0), over(3, 80.0, search=other)])
    with pytest.raises(DataError, match=r"holds the trial 'blend' of another search"):
        SEARCH.pending(5, [replace(over(1, 80.0), method="blend")])


def test_the_best_is_a_recipe_that_says_how_many_were_tried(tmp_path: Path) -> None:
    records = [failed(0), over(1, 80.0), over(2, 91.0, stopped=True), over(7, 91.0), failed(3)]
    assert [record.method for record in ranking(records)] == ["2", "7", "1"]
    best = SEARCH.best([*records, over(3, 70.0), over(3, 70.0)])
    assert best == replace(SEARCH.config(2), recipe="blend-tuned", tried=5)
    path = tmp_path / "best.json"
    path.write_text(best.to_json())
    assert load_recipe(str(path), "digits") == best
    further = search_for("digits", str(path), splits=2)
    again = further.best([over(0, 92.0, search=further)])
    assert again is not None
    assert (again.recipe, again.tried) == ("blend-tuned", 6)
    assert SEARCH.best([failed(0)]) is None


def test_configurations_tried_for_the_recipe_before_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beltrami.config.recipe.recipes.TRIED", {("blend", "digits"): 40})
    best = SEARCH.best([over(1, 80.0), over(2, 70.0)])
    assert best is not None
    assert best.tried == 42
