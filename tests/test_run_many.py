"""Runs made together are the runs made one by one, from the dataset to the result."""

from dataclasses import asdict, replace

import pytest

from beltrami.config import load_recipe, override
from beltrami.run import run_config
from beltrami.run_many import run_configs
from beltrami.train import RunResult

SHORT = ["train.epochs=4", "train.look_every=2", "scheme.time=2", "model.feat=16"]
SHORT += ["scheme.solver=rk4", "scheme.dt=1"]  # which takes the same steps whoever looks


def test_results_are_those_of_single_runs() -> None:
    configs = [override(load_recipe("blend", "digits", seed=seed), SHORT) for seed in (3, 4, 5)]
    together = run_configs(configs)
    for config, outcome in zip(configs, together, strict=True):
        assert isinstance(outcome, tuple)
        expected, found = run_config(config)[0], outcome[0]
        assert isinstance(found, RunResult)
        assert found.seed == config.seed
        assert found.split == expected.split
        assert (found.best_epoch, found.epochs) == (expected.best_epoch, expected.epochs)
        assert found.evaluations == expected.evaluations
        assert found.attention_spread == pytest.approx(expected.attention_spread, abs=1e-4)
        assert found.test_accuracy == pytest.approx(expected.test_accuracy, abs=0.2)  # three nodes of 1,297
        assert set(asdict(found)) == set(asdict(expected))


def test_configurations_that_differ_by_more_than_seeds_are_refused() -> None:
    one = override(load_recipe("blend", "digits"), SHORT)
    with pytest.raises(ValueError, match=r"run_many needs configurations that differ by `seed`"):
        run_configs([one, override(replace(one, seed=1), ["train.lr=0.1"])])
    with pytest.raises(ValueError, match=r"run_many needs configurations"):
        run_configs([])
