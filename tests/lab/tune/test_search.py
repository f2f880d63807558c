"""A search is data: its trials are the same whoever runs them, and the best of them is a recipe."""

from dataclasses import replace
from pathlib import Path

import pytest

from beltrami.config import load_recipe, override
from beltrami.config.build_evolution import terminal_time
from beltrami.config.parse import departures
from beltrami.errors import DataError, UnknownName
from beltrami.lab.study import Record, RecordLog, Sampling
from beltrami.lab.tune import Progress, Search, ranking, search_for

SEARCH = search_for("digits", "blend", splits=2, settings=["train.epochs=30"])


def over(number: int, validation: float, *, search: Search = SEARCH, stopped: bool = False) -> Record:
    return search.line(number, Progress((50.0, validation), 1.5, None if stopped else validation), stopped=stopped)


def failed(number: int) -> Record:
    return SEARCH.line(number, Progress((99.0,), 1.0), error="the loss became nan")


def test_trial_0_is_the_recipe_and_the_others_are_points_of_its_space() -> None:
    base = override(load_recipe("blend", "digits"), ["train.epochs=30"])
    assert SEARCH.trial(0).config == base
    for number in range(1, 30):
        config = SEARCH.trial(number).config
        assert SEARCH.space.strangers(config) == []
        assert config.train.epochs == 30
        changed = {name for name, value in departures(config).items() if departures(base).get(name) != value}
        assert changed <= set(SEARCH.space.spans)
    assert len({str(SEARCH.trial(number).config) for number in range(30)}) == 30
    assert replace(SEARCH, seed=1).trial(3) != SEARCH.trial(3) == replace(SEARCH).trial(3)


def test_settings_that_are_held_are_not_searched() -> None:
    search = search_for("digits", "blend", settings=["train.lr=0.02", "scheme.time = 3"])
    drawn = [search.trial(number).config for number in range(9)]
    assert {(config.train.lr, terminal_time(config.scheme)) for config in drawn} == {(0.02, 3.0)}
    free = search_for("digits", "blend")
    assert [config.model.dropout for config in drawn] == [
        free.trial(number).config.model.dropout for number in range(9)
    ]


def test_splits_are_drawn_by_the_protocol_or_else_initial_weights_are() -> None:
    assert SEARCH.draw == Sampling("shchur", 2, 1)
    assert search_for("cora", "blend", protocol="planetoid", splits=3).draw == Sampling("planetoid", 1, 3)
    seeds = [(config.data.split_seed, config.seed) for config in SEARCH.trial(4).configs()]
    assert seeds == [(0, 0), (1, 1)]


def test_what_names_nothing_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"unknown recipe 'blnd': did you mean 'blend'\?"):
        search_for("digits", "blnd")
    with pytest.raises(ValueError, match=r"`splits` and `inits` of at least 1; got 0"):
        search_for("digits", "blend", splits=0)
    with pytest.raises(UnknownName, match=r"unknown setting 'train.epoch'"):
        search_for("digits", "blend", settings=["train.epoch=3"])


def test_a_line_says_what_a_trial_was_and_how_it_ended(tmp_path: Path) -> None:
    lines = [over(3, 80.0, stopped=True), failed(4)]
    with RecordLog(tmp_path / "trials.jsonl", resume=False) as ledger:
        for line in lines:
            ledger.append(line)
    with RecordLog(tmp_path / "trials.jsonl", resume=True) as ledger:
        assert ledger.lines == lines
    assert lines[0].settings == departures(SEARCH.trial(3).config)
    assert lines[0].also == {
        "validation": 80.0,
        "by_epoch": [50.0, 80.0],
        "stopped": True,
        "seconds": 1.5,
        "runs": [[0, 0], [1, 1]],
    }
    assert (lines[1].error, lines[1].also["by_epoch"]) == ("the loss became nan", [99.0])


def test_trials_that_are_over_are_not_done_again_and_failed_ones_are() -> None:
    assert SEARCH.pending(4, []) == [0, 1, 2, 3]
    lines = [over(1, 80.0), failed(2), over(3, 70.0, stopped=True)]
    assert SEARCH.pending(5, lines) == [0, 2, 4]
    assert SEARCH.pending(5, [*lines, over(2, 60.0)]) == [0, 4]
    assert SEARCH.pending(2, lines) == [0]


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
def test_lines_of_another_search_are_refused(other: Search) -> None:
    with pytest.raises(DataError, match=r"holds the trial '3' of another search"):
        SEARCH.pending(5, [over(1, 80.0), over(3, 80.0, search=other)])
    with pytest.raises(DataError, match=r"holds the trial 'blend' of another search"):
        SEARCH.pending(5, [replace(over(1, 80.0), row="blend")])


def test_the_best_is_a_recipe_that_says_how_many_were_tried(tmp_path: Path) -> None:
    lines = [failed(0), over(1, 80.0), over(2, 91.0, stopped=True), over(7, 91.0), failed(3)]
    assert [line.row for line in ranking(lines)] == ["2", "7", "1"]
    best = SEARCH.best([*lines, over(3, 70.0), over(3, 70.0)])
    assert best == replace(SEARCH.trial(2).config, recipe="blend-tuned", tried=5)
    path = tmp_path / "best.json"
    path.write_text(best.to_json())
    assert load_recipe(str(path), "digits") == best
    further = search_for("digits", str(path), splits=2)
    again = further.best([over(0, 92.0, search=further)])
    assert again is not None
    assert (again.recipe, again.tried) == ("blend-tuned", 6)
    assert SEARCH.best([failed(0)]) is None


def test_configurations_tried_for_the_recipe_before_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beltrami.config.recipe.catalogue.TRIED", {("blend", "digits"): 40})
    best = SEARCH.best([over(1, 80.0), over(2, 70.0)])
    assert best is not None
    assert best.tried == 42
