"""Experiments: configurations, recipes, and runs of them."""

from beltrami.experiment.build import check_settings
from beltrami.experiment.config import RunConfig
from beltrami.experiment.many import run_many
from beltrami.experiment.pin import pin
from beltrami.experiment.recipe import RECIPES, recipe
from beltrami.experiment.run import Problem, evaluate_run, pose, run, save_run
from beltrami.experiment.setting import override, parse, read_config, setting_names

__all__ = [
    "RunConfig",
    "RECIPES",
    "recipe",
    "Problem",
    "check_settings",
    "pin",
    "pose",
    "run",
    "run_many",
    "save_run",
    "evaluate_run",
    "override",
    "parse",
    "read_config",
    "setting_names",
]
