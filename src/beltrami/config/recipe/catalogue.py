"""Recipes: complete settings for each dataset, under names one can ask for."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from beltrami.config.name import named
from beltrami.config.parse import override, read_config
from beltrami.config.recipe.baseline import COMPETITORS
from beltrami.config.recipe.blend import DATASETS, PUBLISHED
from beltrami.config.recipe.zoo import ROWS
from beltrami.config.spec import FlowConfig, RunConfig, SchemeConfig, StencilConfig
from beltrami.errors import UnknownName

PLANETOID = "planetoid"
TELLING = ("diffusivity.score=", "stencil.alike=")  # settings by which one edge counts more than another


def blend(dataset: str) -> RunConfig:
    """BLEND on the input graph, with the settings that validation preferred for the dataset."""
    if dataset not in DATASETS:
        raise UnknownName("dataset", dataset, DATASETS)
    return DATASETS[dataset]()


def uniform(dataset: str) -> RunConfig:
    """The same with edges that all count alike, whatever their ends carry: what attention has to beat."""
    config = blend(dataset)
    return replace(
        config,
        recipe="uniform",
        diffusivity=replace(config.diffusivity, score="uniform"),
        stencil=replace(config.stencil, alike=0.0),
    )


REWIRED = StencilConfig("digl", k=64, restart=0.05, loops=0.0)  # the kernel's diagonal is on the loops already
REWIRED_SETTINGS: dict[str, tuple[str, ...]] = {
    "citeseer": ("stencil.k=128",),
    "pubmed": (
        *("stencil.restart=0.1", "position.encoding=none", "diffusivity.score=uniform", "diffusivity.over=both"),
        *("model.dropout=0.5", "train.epochs=120", "train.weight_decay=0.005", "train.patience=50"),
        *("train.time_multiple=3", "train.adopt=0"),
    ),
}
"""Where ``blend-knn`` departs from ``blend`` on the graph above: settings by dataset, as ``--set`` takes them."""


def blend_knn(dataset: str) -> RunConfig:
    """BLEND-kNN: the same on the graph that personalised PageRank makes of the input graph (DIGL).

    Each node hears from the nodes of the largest entries in its row, and the entries weigh the edges.
    """
    config = replace(blend(dataset), recipe="blend-knn", stencil=REWIRED)
    return override(config, REWIRED_SETTINGS.get(dataset, ()))


POLYAKOV_SETTINGS: dict[str, tuple[str, ...]] = {
    "cora": (
        *("model.dropout=0.7", "train.lr=0.02292", "train.weight_decay=0.02", "train.consistency=1"),
        *("diffusivity.score=cosine", "diffusivity.width=128", "diffusivity.heads=8", "diffusivity.over=both"),
    ),
}
"""Where ``polyakov`` departs from ``blend``: settings by dataset, as ``--set`` takes them."""


def polyakov(dataset: str) -> RunConfig:
    """The gradient flow of Theorem 1: it goes down a Polyakov action, attached to where it began."""
    config = override(blend(dataset), POLYAKOV_SETTINGS.get(dataset, ()))
    return replace(
        config,
        recipe="polyakov",
        flow=FlowConfig(source=True, psi="perona-malik", length=3.0),
        stencil=replace(config.stencil, loops=0.0),  # no distance lies along a loop
        scheme=SchemeConfig("euler", 4.0, dt=0.5, descends=True),
    )


RECIPES: dict[str, Callable[[str], RunConfig]] = {
    "blend": blend,
    "blend-knn": blend_knn,
    "uniform": uniform,
    "polyakov": polyakov,
    **COMPETITORS,
    **ROWS,
}


def load_recipe(
    name: str, dataset: str, *, protocol: str | None = None, seed: int = 0, split_seed: int | None = None
) -> RunConfig:
    """The configuration of a recipe on a dataset, with its seeds.

    Args:
        name: one of ``RECIPES``, or a configuration file (``*.json``), as ``beltrami tune`` and every run leave one.
        dataset: one of the datasets the recipe has settings for.
        protocol: the split's; the recipe's own by default. ``planetoid`` is a split of the whole graph.
        seed: of weights and dropout, and of the split unless it has one of its own.
        split_seed: of the split.
    """
    config = _from_file(name, dataset) if is_file(name) else named("recipe", name, RECIPES)(dataset)
    data = replace(config.data, split_seed=seed if split_seed is None else split_seed)
    if protocol is not None:
        data = replace(data, protocol=protocol)
    if protocol == PLANETOID:
        data = replace(data, component="all")
        config = config if is_file(name) else override(config, _published(config))
    return replace(config, seed=seed, data=data)


def is_file(name: str) -> bool:
    """Whether a recipe's name is that of a configuration file."""
    return name.endswith(".json")


def _published(config: RunConfig) -> tuple[str, ...]:
    """Settings for the published split: ``blend``'s, and for ``uniform`` those that tell no edge from another."""
    if config.recipe not in ("blend", "uniform"):
        return ()
    settings = PUBLISHED.get(config.dataset, ())
    return tuple(each for each in settings if config.recipe == "blend" or not each.startswith(TELLING))


def _from_file(name: str, dataset: str) -> RunConfig:
    config = read_config(Path(name))
    if dataset != config.dataset:
        raise UnknownName(f"dataset for recipe {name!r}", dataset, [config.dataset])
    return config
