"""Recipes: complete settings for each dataset, under names one can ask for."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from beltrami.errors import UnknownName
from beltrami.experiment.competitor import COMPETITORS
from beltrami.experiment.config import (
    DataConfig,
    DiffusivityConfig,
    FlowConfig,
    ModelConfig,
    PositionConfig,
    RunConfig,
    SchemeConfig,
    StencilConfig,
    TrainConfig,
)
from beltrami.experiment.name import named
from beltrami.experiment.row import ROWS
from beltrami.experiment.setting import override, read_config

PPR_ROWS = PositionConfig(encoding="ppr", restart=0.05, top=64)


def digits() -> RunConfig:
    """Handwritten digits on the graph of their nearest neighbours."""
    return RunConfig(
        "digits",
        "blend",
        data=DataConfig(component="all", protocol="shchur"),
        model=ModelConfig(feat=64, dropout=0.2, input_dropout=0.1),
        diffusivity=DiffusivityConfig("scaled-dot", 32, 2, link="squareplus", over="rows"),
        flow=FlowConfig(source=True),
        scheme=SchemeConfig("exponential", 8.0),
        train=TrainConfig(100, "adam", 0.01, 5e-3, 1e-3),
    )


def cora() -> RunConfig:
    return RunConfig(
        "cora",
        "blend",
        position=PPR_ROWS,
        model=ModelConfig(pos=16, feat=64, dropout=0.7, input_dropout=0.6),
        diffusivity=DiffusivityConfig("cosine", 128, 8, link="squareplus", over="both"),
        flow=FlowConfig(source=True),
        scheme=SchemeConfig("exponential", 18.29),
        train=TrainConfig(100, "adamax", 0.02292, 0.02, 5e-4, look_every=2, consistency=1.0, passes=2, temperature=0.5),
    )


def citeseer() -> RunConfig:
    return RunConfig(
        "citeseer",
        "blend",
        model=ModelConfig(feat=64, dropout=0.6, input_dropout=0.680),
        diffusivity=DiffusivityConfig("uniform", over="both"),
        flow=FlowConfig(source=True),
        scheme=SchemeConfig("exponential", 7.874),
        train=TrainConfig(
            250, "adam", 0.008636, 0.07, patience=40, average=0.9, consistency=0.7, passes=2, temperature=0.3
        ),
    )


def pubmed() -> RunConfig:
    return RunConfig(
        "pubmed",
        "blend",
        position=PPR_ROWS,
        model=ModelConfig(pos=16, feat=64, dropout=0.072, input_dropout=0.5),
        diffusivity=DiffusivityConfig("exp-kernel", 16, 1, link="squareplus", over="both"),
        flow=FlowConfig(source=True),
        scheme=SchemeConfig("exponential", 12.94),
        train=TrainConfig(600, "adamax", 0.01467, 0.001824, 1e-4, look_every=2),
    )


def coauthor_cs() -> RunConfig:
    return RunConfig(
        "coauthor-cs",
        "blend",
        model=ModelConfig(pos=32, feat=128, dropout=0.686, input_dropout=0.528),
        diffusivity=DiffusivityConfig("cosine", 8, 4, link="squareplus", over="columns"),
        stencil=StencilConfig(loops=0.0),
        scheme=SchemeConfig("exponential", 3.126),
        train=TrainConfig(250, "rmsprop", 0.000934, 0.004738, 1e-4, look_every=2),
    )


def computers() -> RunConfig:
    return RunConfig(
        "computers",
        "blend",
        model=ModelConfig(feat=64, dropout=0.087, input_dropout=0.597),
        diffusivity=DiffusivityConfig("scaled-dot", 64, 4, link="squareplus", over="rows"),
        stencil=StencilConfig(loops=1.714),
        scheme=SchemeConfig("exponential", 3.249),
        train=TrainConfig(200, "adam", 0.00353, 0.007675, 1e-4, look_every=2, consistency=0.5, passes=2),
    )


def photo() -> RunConfig:
    return RunConfig(
        "photo",
        "blend",
        model=ModelConfig(feat=64, dropout=0.465, input_dropout=0.429, batch_norm=True),
        diffusivity=DiffusivityConfig("scaled-dot", 64, 4, link="squareplus", over="rows"),
        stencil=StencilConfig(loops=1.0),
        scheme=SchemeConfig("exponential", 3.582),
        train=TrainConfig(200, "adam", 0.005561, 0.004708, 1e-4, look_every=1, consistency=0.5, passes=2),
    )


def ogbn_arxiv() -> RunConfig:
    """The published settings on the whole graph, with its published split; not tuned by us."""
    return RunConfig(
        "ogbn-arxiv",
        "blend",
        data=DataConfig(component="all", protocol="ogb"),
        position=PositionConfig("deepwalk", channels=64),
        model=ModelConfig(pos=98, feat=64, dropout=0.116, input_dropout=0.0, batch_norm=True),
        diffusivity=DiffusivityConfig("scaled-dot", 32, 2, link="softmax", over="rows"),
        stencil=StencilConfig(loops=1.0),
        scheme=SchemeConfig("exponential", 3.676),
        train=TrainConfig(100, "rmsprop", 0.005451, 0.0, 0.0),
    )


DATASETS: dict[str, Callable[[], RunConfig]] = {
    "digits": digits,
    "cora": cora,
    "citeseer": citeseer,
    "pubmed": pubmed,
    "coauthor-cs": coauthor_cs,
    "computers": computers,
    "photo": photo,
    "ogbn-arxiv": ogbn_arxiv,
}


def blend(dataset: str) -> RunConfig:
    """BLEND on the input graph, with the settings that validation preferred for the dataset."""
    if dataset not in DATASETS:
        raise UnknownName("dataset", dataset, DATASETS)
    return DATASETS[dataset]()


def uniform(dataset: str) -> RunConfig:
    """The same with fixed weights in place of learned ones: what attention has to beat."""
    config = blend(dataset)
    return replace(config, recipe="uniform", diffusivity=replace(config.diffusivity, score="uniform"))


REWIRED = StencilConfig("digl", k=64, restart=0.05, loops=0.0)  # the kernel's diagonal is on the loops already
REWIRED_SETTINGS: dict[str, tuple[str, ...]] = {
    "citeseer": ("stencil.k=128",),
    "pubmed": (
        *("stencil.restart=0.1", "position.encoding=none", "diffusivity.score=uniform", "model.dropout=0.5"),
        *("scheme.time=40", "train.epochs=120", "train.weight_decay=0.005", "train.patience=50", "train.look_every=4"),
    ),
}
"""Where ``blend-knn`` departs from ``blend`` on the graph above: settings by dataset, as ``--set`` takes them."""


def blend_knn(dataset: str) -> RunConfig:
    """BLEND-kNN: the same on the graph that personalised PageRank makes of the input graph (DIGL).

    Each node hears from the nodes of the largest entries in its row, and the entries weigh the edges.
    """
    config = replace(blend(dataset), recipe="blend-knn", stencil=REWIRED)
    return override(config, REWIRED_SETTINGS.get(dataset, ()))


def polyakov(dataset: str) -> RunConfig:
    """The gradient flow of Theorem 1: it goes down a Polyakov action, attached to where it began."""
    config = blend(dataset)
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


def recipe(
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
        component = "all" if protocol == "planetoid" else config.data.component
        data = replace(data, protocol=protocol, component=component)
    return replace(config, seed=seed, data=data)


def is_file(name: str) -> bool:
    """Whether a recipe's name is that of a configuration file."""
    return name.endswith(".json")


def _from_file(name: str, dataset: str) -> RunConfig:
    config = read_config(Path(name))
    if dataset != config.dataset:
        raise UnknownName(f"dataset for recipe {name!r}", dataset, [config.dataset])
    return config
