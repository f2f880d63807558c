"""Effort: how many configurations were tried on validation before a recipe was settled on."""

from collections.abc import Mapping
from types import MappingProxyType

from beltrami.experiment.config import RunConfig

TRIED: Mapping[tuple[str, str], int] = MappingProxyType({})
"""Configurations tried, by recipe and dataset; where nobody counted, there is no entry."""


def tried(config: RunConfig) -> int | None:
    """The number of configurations tried before this one: its own count, else that of its recipe on the dataset, or
    None where nobody counted."""
    return TRIED.get((config.recipe, config.dataset)) if config.tried is None else config.tried
