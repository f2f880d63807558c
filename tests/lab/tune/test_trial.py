"""A trial is the mean of its runs, scored by validation alone, and can be stopped after any epoch."""

from dataclasses import replace
from importlib import import_module
from statistics import mean
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from beltrami.config import RunConfig, load_recipe, override
from beltrami.data import Split
from beltrami.errors import SolverError
from beltrami.lab.study.planning import Sampling
from beltrami.lab.tune.scheduler import HIDDEN, train_trial, without_test_labels
from beltrami.lab.tune.search import TrialProgress
from beltrami.run import Problem, run_config
from beltrami.train import Epoch, TrainingWarning, ValidationScore

SHORT = [
    "train.epochs=4",
    "train.validate_every=2",
    "scheme.kind=constant",
    "scheme.kind=constant",
    "scheme.solver=rk4",
    "scheme.dt=1",
    "scheme.time=2",
    "model.feat=8",
]
CONFIG = override(load_recipe("blend", "digits"), SHORT)
MODULE = import_module("beltrami.lab.tune.scheduler")


def reports(configs: list[RunConfig]) -> list[TrialProgress]:
    return list(train_trial(configs))


@pytest.mark.slow
def test_a_trial_is_the_mean_of_its_runs() -> None:
    trial = Sampling("shchur", 2, 1).configs(CONFIG)
    epochs: list[list[float]] = []
    found = []
    for config in trial:
        assert config.seed == config.data.split_seed
        log: list[Epoch] = []
        result, _ = run_config(config, callbacks=[log.append])
        epochs.append([100 * epoch.best[0].accuracy for epoch in log])
        found.append(result.val_accuracy)
    *during, last = reports(trial)
    assert [progress.epochs for progress in during] == [1, 2, 3, 4]
    assert during[-1].by_epoch == pytest.approx([mean(each) for each in zip(*epochs, strict=True)], abs=1e-4)
    assert all(progress.final is None for progress in during)
    assert last.final == pytest.approx(mean(found), abs=1e-4)
    assert last.validation == last.final
    assert last.seconds > 0


@pytest.mark.slow
def test_trials_are_repeatable_and_leave_the_callers_random_state_alone() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, other = (reports(Sampling("shchur", 1, 2).configs(CONFIG))[-1] for _ in range(2))
    assert (one.by_epoch, one.final) == (other.by_epoch, other.final)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.slow
def test_poisoned_test_labels_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Sampling("shchur", 2, 1).configs(CONFIG)
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
    for module in ("beltrami.train.validation", "beltrami.train"):
        monkeypatch.setattr(import_module(module), "read_test", refuse)
    dirty = reports(trial)
    assert [(each.by_epoch, each.final) for each in dirty] == [(each.by_epoch, each.final) for each in clean]


@pytest.mark.slow
def test_training_gets_no_label_of_a_test_node(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Tensor, Split]] = []
    start_fit = MODULE.start_fit

    def watched(model: Any, inputs: Any, y: Tensor, split: Split, *rest: Any, **named: Any) -> Any:
        seen.append((y, split))
        return start_fit(model, inputs, y, split, *rest, **named)

    monkeypatch.setattr(MODULE, "start_fit", watched)
    reports(Sampling("shchur", 2, 1).configs(CONFIG))
    assert len(seen) == 2
    for y, split in seen:
        assert bool((y[split.test] == HIDDEN).all())
        assert bool((y[split.train | split.val] >= 0).all())


def test_hidden_labels_are_all_but_those_of_training_and_validation() -> None:
    masks = torch.eye(4, dtype=torch.bool)
    split = Split(masks[0], masks[1], masks[2], "mine", 0)
    assert without_test_labels(torch.tensor([4, 5, 6, 7]), split).tolist() == [4, 5, HIDDEN, HIDDEN]


@pytest.mark.slow
def test_a_trial_can_be_stopped_after_any_epoch() -> None:
    trial = train_trial(Sampling("shchur", 2, 1).configs(override(CONFIG, ["train.epochs=100000"])))
    assert [next(trial).epochs, next(trial).epochs] == [1, 2]
    trial.close()
    with pytest.raises(StopIteration):
        next(trial)


def test_a_run_that_ends_early_counts_with_its_best_until_the_others_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs are taken in turns; after its end a run counts with its final score."""
    order: list[str] = []

    class Scripted:
        def __init__(self, name: str, scores: list[float]) -> None:
            self.name, self.scores = name, iter(scores)
            self.result = SimpleNamespace(best=ValidationScore(scores[-1] + 0.5, 0.0, 1.0))

        def __next__(self) -> Any:
            score = next(self.scores)
            order.append(self.name)
            return SimpleNamespace(best=(ValidationScore(score, 0.0, 1.0),))

        def stop(self) -> None:
            order.append(f"{self.name} stopped")

    fits = iter([Scripted("a", [0.1, 0.2]), Scripted("b", [0.3, 0.4, 0.5])])
    monkeypatch.setattr(MODULE, "load_problem", lambda *_, **__: None)
    monkeypatch.setattr(MODULE, "on_split", lambda *_: None)
    monkeypatch.setattr(MODULE, "_start", lambda *_: next(fits))
    *during, last = reports(Sampling("shchur", 2, 1).configs(CONFIG))
    assert order == ["a", "b", "a", "b", "b", "a stopped", "b stopped"]
    assert during[-1].by_epoch == pytest.approx((20.0, 30.0, 60.0))
    assert last.final == pytest.approx(85.0)


@pytest.mark.slow
def test_a_trial_that_diverges_raises() -> None:
    config = override(CONFIG, ["train.lr=1e20"])
    with pytest.warns(TrainingWarning), pytest.raises(SolverError, match=r"became (nan|inf|NaN)"):
        reports(Sampling("shchur", 1, 1).configs(config))


def test_validation_of_a_trial_is_the_best_so_far() -> None:
    assert TrialProgress().validation is None
    assert TrialProgress((70.0, 80.0)).validation == 80.0
    assert TrialProgress((70.0, 80.0), 1.0, 81.0).validation == 81.0
