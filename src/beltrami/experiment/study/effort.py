"""Effort: how many configurations were tried on validation before a recipe was settled on."""

from collections.abc import Mapping
from types import MappingProxyType

TRIED: Mapping[tuple[str, str], int] = MappingProxyType({})
"""Configurations tried, by recipe and dataset; where nobody counted, there is no entry."""


def tried(recipe: str, dataset: str) -> int | None:
    """The number of configurations tried for a recipe on a dataset, or None where nobody counted."""
    return TRIED.get((recipe, dataset))
