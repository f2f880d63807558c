"""All recipes by name, and how many configurations were compared for them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from beltrami.arguments import Seed, checked
from beltrami.config.parser import override, read_config
from beltrami.config.recipe.aids import ALL, with_aids, without_aids
from beltrami.config.recipe.baseline import BASELINE_RECIPES, BASELINES, DATASETS, Recipes, baseline
from beltrami.config.recipe.blend import NEIGHBOURS, PUBLISHED, UNIFORM, blend, blend_knn, polyakov, uniform
from beltrami.config.recipe.equal_budget import EQUAL_BUDGET
from beltrami.config.recipe.paper import PAPER, paper, paper_knn
from beltrami.config.spec import RunConfig
from beltrami.errors import UnknownName

PLANETOID = "planetoid"
DISTILLED = ("train.distillation.kind=soft-targets", "train.distillation.rounds=4")
TWO_ROUNDS = "train.distillation.rounds=2"
DISTILLED_ON: Mapping[str, tuple[str, ...]] = {
    "coauthor-cs": (TWO_ROUNDS,),
    "computers": (TWO_ROUNDS,),
    "photo": (TWO_ROUNDS, *NEIGHBOURS),
}
"""Where ``blend-distilled`` departs from ``blend`` with ``DISTILLED``: more rounds gain nothing on these graphs, and
edges to similar nodes gain on Photo with distillation, but not without."""


def blend_plain(dataset: str) -> RunConfig:
    """Return ``blend`` without training aids, with settings that were chosen without them, where there are any."""
    return _plain(blend(dataset))


def _plain(config: RunConfig) -> RunConfig:
    """Return this configuration of ``blend`` without aids; if there are settings searched without aids, those."""
    plain, searched = without_aids(config), EQUAL_BUDGET.get(("blend-plain", config.dataset, False))
    if searched is not None:
        plain = replace(override(without_aids(blend(config.dataset)), searched.settings), tried=searched.tried)
    return replace(plain, recipe="blend-plain")


def blend_distilled(dataset: str) -> RunConfig:
    """Return ``blend`` with distillation: four rounds, or two, each with the predictions of those before as soft
    targets."""
    settings = [*DISTILLED, *DISTILLED_ON.get(dataset, ())]
    return replace(override(blend(dataset), settings), recipe="blend-distilled")


BLEND_RECIPES: Recipes = {
    "blend": blend,
    "blend-distilled": blend_distilled,
    "blend-knn": blend_knn,
    "blend-plain": blend_plain,
    "uniform": uniform,
    "polyakov": polyakov,
    "paper": paper,
    "paper-knn": paper_knn,
}
RECIPES: Recipes = {**BLEND_RECIPES, **BASELINE_RECIPES}
"""Recipes by name: functions that return the configuration for a dataset."""
OURS = ("blend", "blend-distilled", "blend-plain", "uniform", "blend-knn")
ON_DATASETS = {"cora": 93, "citeseer": 235, "pubmed": 253, "coauthor-cs": 19, "computers": 21, "photo": 23}
IDEAS = {"cora": 14, "citeseer": 3}
LISTED = {("cgnn", "photo"): 5, ("monet", "pubmed"): 11, ("sage-mean", "pubmed"): 4}
UNLISTED = (
    *((name, "cora") for name in ("gcn", "gat", "gat-ppr", "monet", "sage-mean")),
    *((name, "citeseer") for name in ("gcn", "sage-mean", "gde")),
    *(("monet", "computers"), ("sage-mean", "computers"), ("sage-mean", "photo")),
)
TRIED = {
    **{(name, dataset): 1 for name in BASELINES for dataset in DATASETS if (name, dataset) not in UNLISTED},
    **LISTED,
    **{(name, dataset): 1 for name in ("paper", "paper-knn") for dataset in PAPER},
    **{(name, dataset): count for name in OURS for dataset, count in ON_DATASETS.items()},
    **{("blend-distilled", dataset): count + IDEAS.get(dataset, 0) for dataset, count in ON_DATASETS.items()},
}
"""Configurations compared on validation, by recipe and dataset; 1 where none was compared with another: the settings of
the paper, and baselines with the settings of their authors or of another baseline. Those of all of our recipes count
together, on random and on published splits, as listed in ``results/search``; comparisons made before there were lists
were not counted. Those of the list ``ideas``, ``IDEAS``, came after ``blend`` was chosen and count for
``blend-distilled`` alone. ``UNLISTED`` baselines were compared with a few others before there were lists."""


@checked
def load_recipe(
    name: str,
    dataset: str,
    *,
    protocol: str | None = None,
    seed: Seed | None = None,
    split_seed: Seed | None = None,
    aids: Sequence[str] | None = None,
    aids_of: str = "blend",
) -> RunConfig:
    """Return the configuration of a recipe, one of ``RECIPES`` or a configuration file (``*.json``), as ``beltrami
    tune`` and every run write it, on one of the datasets that it has settings for.

    ``protocol``: of the split; the recipe's own by default. ``planetoid`` is a split of the whole graph. ``seed``: of
    weights and dropout, and of the split unless ``split_seed`` is given; by default the seeds of the file, or 0.
    ``aids``: the training aids by name, one of ``AIDS``, with the values that ``blend``, or another recipe ``aids_of``,
    has on this dataset, as far as they apply to the model; none for an empty list, the recipe's own by default. A
    baseline with all aids has the settings that were chosen with them, where there are any (``EQUAL_BUDGET``).
    """
    if not is_file(name) and name not in RECIPES:
        raise UnknownName("recipe", name, RECIPES)
    aided = name in BASELINES and aids is not None and set(aids) == set(ALL)
    config = read_config(Path(name)) if is_file(name) else RECIPES[name](dataset)
    config = baseline(name, dataset, aided=True) if aided else config
    if dataset != config.dataset:
        raise UnknownName(f"dataset for recipe {name!r}", dataset, [config.dataset])
    split_seed = seed if split_seed is None else split_seed
    data = config.data if split_seed is None else replace(config.data, split_seed=split_seed)
    if protocol is not None:
        data = replace(data, protocol=protocol)
    if protocol == PLANETOID:
        data = replace(data, component="all")
        config = config if is_file(name) else _published(config)
    config = replace(config, seed=config.seed if seed is None else seed, data=data)
    return config if aids is None else with_aids(config, load_recipe(aids_of, dataset, protocol=data.protocol), aids)


def is_file(name: str) -> bool:
    """Return whether the name of a recipe is that of a configuration file."""
    return name.endswith(".json")


def search_count(config: RunConfig) -> int | None:
    """Return how many configurations were compared before this one: its own count, else its recipe's on the dataset;
    None if unknown."""
    return TRIED.get((config.recipe, config.dataset)) if config.tried is None else config.tried


def _published(config: RunConfig) -> RunConfig:
    """Return ``blend``, a variant of it or ``uniform`` with the settings for the published split."""
    settings = PUBLISHED.get(config.dataset, ())
    if config.recipe == "blend-plain":
        return _plain(override(blend(config.dataset), settings))
    if config.recipe in ("blend", "blend-distilled"):
        return override(config, settings)
    return override(config, [*settings, *UNIFORM], skip_inapplicable=True) if config.recipe == "uniform" else config
