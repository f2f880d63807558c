"""A trial is what single runs are, judged by validation alone, and ends when it is told to."""

from dataclasses import replace
from importlib import import_module
from statistics import mean
from typing import Any

import pytest
import torch
from torch import Tensor

from beltrami.config import RunConfig, load_recipe, override
from beltrami.data import Split
from beltrami.errors import SolverError
from beltrami.lab.study import Sampling
from beltrami.lab.tune import Progress, Trial, attempt
from beltrami.lab.tune.trial import HIDDEN, without_test_labels
from beltrami.run import Problem, run_config

SHORT = [
    "train.epochs=4",
    "train.validate_every=2",
    "scheme.kind=constant",
    "scheme.solver=rk4",
    "scheme.dt=1",
    "scheme.time=2",
    "model.feat=8",
]
CONFIG = override(load_recipe("blend", "digits"), SHORT)
MODULE = import_module("beltrami.lab.tune.trial")


def reports(trial: Trial) -> list[Progress]:
    heard: list[Progress] = []
    attempt(trial, heard.append)
    return heard


def test_a_trial_is_the_mean_of_its_runs() -> None:
    trial = Trial(0, CONFIG, Sampling("shchur", 2, 1))
    epochs: list[list[float]] = []
    found = []
    for config in trial.configs():
        assert config.seed == config.data.split_seed
        best: list[float] = []
        result, _ = run_config(config, on_epoch=lambda epoch, best=best: best.append(100 * epoch.best[0].accuracy))  # type: ignore[misc]
        epochs.append(best)
        found.append(result.val_accuracy)
    *during, last = reports(trial)
    assert [progress.epochs for progress in during] == [1, 2, 3, 4]
    assert during[-1].by_epoch == pytest.approx([mean(each) for each in zip(*epochs, strict=True)], abs=1e-4)
    assert all(progress.final is None for progress in during)
    assert last.final == pytest.approx(mean(found), abs=1e-4)
    assert last.validation == last.final
    assert last.seconds > 0


def test_trials_are_repeatable_and_leave_the_callers_random_state_alone() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, other = (reports(Trial(0, CONFIG, Sampling("shchur", 1, 2)))[-1] for _ in range(2))
    assert (one.by_epoch, one.final) == (other.by_epoch, other.final)
    assert torch.equal(torch.get_rng_state(), before)


def test_poisoned_test_labels_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Trial(0, CONFIG, Sampling("shchur", 2, 1))
    clean = reports(trial)
    on_split = MODULE.on_split

    def poisoned(problem: Problem, config: RunConfig) -> Problem:
        drawn: Problem = on_split(problem, config)
        y, test = drawn.dataset.y, drawn.split.test
        assert int(test.sum()) > 1000
        return replace(drawn, dataset=replace(drawn.dataset, y=torch.where(test, (y + 3) % 10, y)))

    def refuse(*_: object, **__: object) -> float:
        raise AssertionError("test labels were read")

    monkeypatch.setattr(MODULE, "on_split", poisoned)
    for module in ("beltrami.train.validation", "beltrami.run", "beltrami.train"):
        monkeypatch.setattr(import_module(module), "read_test", refuse)
    dirty = reports(trial)
    assert [(each.by_epoch, each.final) for each in dirty] == [(each.by_epoch, each.final) for each in clean]


def test_what_training_sees_holds_no_label_of_a_test_node(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Tensor, Split]] = []
    fit = MODULE.fit

    def watched(model: Any, inputs: Any, y: Tensor, split: Split, *rest: Any, **named: Any) -> Any:
        seen.append((y, split))
        return fit(model, inputs, y, split, *rest, **named)

    monkeypatch.setattr(MODULE, "fit", watched)
    reports(Trial(0, CONFIG, Sampling("shchur", 2, 1)))
    assert len(seen) == 2
    for y, split in seen:
        assert bool((y[split.test] == HIDDEN).all())
        assert bool((y[split.train | split.val] >= 0).all())


def test_hidden_labels_are_all_but_those_of_training_and_validation() -> None:
    masks = torch.eye(4, dtype=torch.bool)
    split = Split(masks[0], masks[1], masks[2], "mine", 0)
    assert without_test_labels(torch.tensor([4, 5, 6, 7]), split).tolist() == [4, 5, HIDDEN, HIDDEN]


def test_a_trial_ends_at_the_epoch_where_it_is_told_to() -> None:
    heard: list[int] = []

    def stop(progress: Progress) -> None:
        heard.append(progress.epochs)
        if progress.epochs == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt(Trial(0, override(CONFIG, ["train.epochs=100000"]), Sampling("shchur", 2, 1)), stop)
    assert heard == [1, 2]


def test_a_trial_that_diverges_raises() -> None:
    config = override(CONFIG, ["train.lr=1e20"])
    with pytest.raises(SolverError, match=r"not finite|became (nan|inf|NaN)"):
        attempt(Trial(0, config, Sampling("shchur", 1, 1)), lambda progress: None)


def test_progress_speaks_of_the_best_so_far() -> None:
    assert Progress().validation is None
    assert (Progress((70.0, 80.0)).validation, Progress((70.0, 80.0), 1.0, 81.0).validation) == (80.0, 81.0)
