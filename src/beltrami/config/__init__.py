"""Configurations: their types, their parser, the builder of objects and the recipes."""

from beltrami.config.build import check_settings
from beltrami.config.parser import override, parse, read_config, setting_names
from beltrami.config.recipe.recipes import RECIPES, load_recipe
from beltrami.config.spec import RunConfig

__all__ = ["RunConfig", "check_settings", "override", "parse", "read_config", "setting_names", "RECIPES", "load_recipe"]
