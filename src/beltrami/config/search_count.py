"""Effort: how many configurations were tried on validation before a recipe was settled on."""

from collections.abc import Mapping
from types import MappingProxyType

from beltrami.config.spec import RunConfig

OURS = ("blend", "uniform", "blend-knn")
ON_DATASETS = {"cora": 93, "citeseer": 235, "pubmed": 253, "coauthor-cs": 19, "computers": 21, "photo": 23}
TRIED: Mapping[tuple[str, str], int] = MappingProxyType(
    {(name, dataset): count for name in OURS for dataset, count in ON_DATASETS.items()}
)
"""Configurations tried, by recipe and dataset: those of all of our recipes together, random splits and the published
one, as they are listed in ``results/search``. Those tried before there were such lists were not counted; where nobody
counted at all, there is no entry."""


def search_count(config: RunConfig) -> int | None:
    """The number of configurations tried before this one: its own count, else that of its recipe on the dataset, or
    None where nobody counted."""
    return TRIED.get((config.recipe, config.dataset)) if config.tried is None else config.tried
