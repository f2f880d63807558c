"""Tuning: random search over the settings of a recipe, by validation alone."""
