"""Search spaces: which settings of a recipe a search changes, and how random values are drawn."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from random import Random
from typing import Any

from beltrami.config.spec import RunConfig
from beltrami.errors import UnknownName

ABSENT = object()  # the value of a setting that the chosen kinds do not have
TUNED = "-tuned"  # a search adds it to the name of its recipe
DIGITS = 4  # significant digits of a drawn number: readable, and finer than validation can distinguish


@dataclass(frozen=True)
class Uniform:
    """Numbers from ``low`` to ``high``, uniformly; ``at`` returns the number of a uniform u of the unit interval."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"Uniform needs `low` below `high`; got {self.low}, {self.high}.")

    def at(self, u: float) -> float:
        return _rounded(self.low + u * (self.high - self.low), self.low, self.high)


@dataclass(frozen=True)
class LogUniform:
    """Positive numbers from ``low`` to ``high`` whose logarithms are uniform."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high:
            raise ValueError(f"LogUniform needs `low` above 0 and below `high`; got {self.low}, {self.high}.")

    def at(self, u: float) -> float:
        return _rounded(self.low * math.exp(u * math.log(self.high / self.low)), self.low, self.high)


@dataclass(frozen=True, init=False)
class Choice:
    """One of several values, uniformly."""

    options: tuple[Any, ...]

    def __init__(self, *options: Any) -> None:
        if len(options) < 2:
            raise ValueError(f"Choice needs at least two options; got {options}.")
        object.__setattr__(self, "options", options)

    def at(self, u: float) -> Any:
        return self.options[int(u * len(self.options))]


Distribution = Uniform | LogUniform | Choice


def _rounded(value: float, low: float, high: float) -> float:
    return min(max(float(f"{value:.{DIGITS}g}"), low), high)


Space = Mapping[str, Distribution]
"""Distributions of settings by their dotted names."""


def draw(space: Space, number: int, *, seed: int) -> dict[str, Any]:
    """Return the settings of a point of a space, drawn independently. A value depends on the seed, the point's number
    and the setting's name alone, so that a further setting leaves the values of the others as they are."""
    return {name: drawn.at(Random(f"{seed} {number} {name}").random()) for name, drawn in space.items()}


def value_of(config: RunConfig, name: str) -> Any:
    """Return a setting by its dotted name; ``ABSENT`` where the chosen kinds do not have it."""
    value: Any = config
    return reduce(lambda group, part: getattr(group, part, ABSENT), name.split("."), value)


COMMON: Space = {
    "model.dropout": Uniform(0.0, 0.8),
    "model.input_dropout": Uniform(0.0, 0.8),
    "train.optimiser": Choice("adam", "adamax", "rmsprop"),
    "train.lr": LogUniform(5e-4, 5e-2),
    "train.weight_decay": LogUniform(1e-4, 0.2),
}
FLOW: Space = {
    **COMMON,
    "model.feat": Choice(32, 64, 80, 128),
    "diffusivity.over": Choice("rows", "columns", "both"),
    "flow.source": Choice(True, False),
    "stencil.loops": Uniform(0.0, 2.0),
    "scheme.time": LogUniform(1.0, 60.0),
}
ATTENTION: Space = {
    "diffusivity.width": Choice(8, 16, 32, 64, 128),
    "diffusivity.heads": Choice(1, 2, 4, 8),
    "diffusivity.link": Choice("softmax", "squareplus"),
    "train.attention_decay": LogUniform(1e-5, 1e-1),
}
SCORE: Space = {
    "diffusivity.width": Choice(16, 32, 64, 128),  # Pearson's needs two channels a head
    "diffusivity.kind": Choice("uniform", "scalar-cosine", "scaled-dot", "cosine", "pearson", "exp-kernel"),
}
INPUT: Space = {
    "stencil.reweight.kind": Choice("none", "similarity"),
    "stencil.reweight.sharpness": Uniform(0.0, 1.0),
    "stencil.add.kind": Choice("none", "neighbours"),
    "stencil.add.k": Choice(5, 10),
}
ACTION: Space = {
    "model.feat": Choice(32, 64, 80, 128),
    "flow.psi.kind": Choice("constant", "gauss", "perona-malik", "roughness"),
    "flow.psi.length": LogUniform(0.3, 10.0),
    "flow.attachment": Choice(True, False),
    "scheme.time": LogUniform(1.0, 12.0),
}
GRAPH: Space = {
    "stencil.k": Choice(16, 32, 64, 128),
    "stencil.restart": LogUniform(0.02, 0.3),
    "stencil.loops": Uniform(0.0, 1.0),
    "scheme.time": LogUniform(1.0, 60.0),
}
NETWORK: dict[str, Distribution] = {**COMMON, "model.width": Choice(16, 32, 64, 128)}
GAT: Space = NETWORK | {"model.heads": Choice(4, 8), "model.attention_dropout": Uniform(0.0, 0.8)}
ODE: Space = NETWORK | {"scheme.time": Uniform(0.5, 4.0)}
LANCZOS: Space = NETWORK | {"model.steps": Choice(*range(5, 31))}

SPACES: Mapping[str, Space] = {
    "blend": {**FLOW, **ATTENTION, **SCORE, **INPUT},
    "blend-distilled": {**FLOW, **ATTENTION, **SCORE, **INPUT},
    "blend-plain": {**FLOW, **ATTENTION, **SCORE},
    "blend-knn": {**FLOW, **ATTENTION, **SCORE, **GRAPH},
    "uniform": FLOW,
    "polyakov": {**COMMON, **ACTION},
    "grand": {**FLOW, **ATTENTION},
    **dict.fromkeys(("gcn", "sage-mean", "sage-maxpool"), NETWORK),
    **dict.fromkeys(("gat", "gat-ppr"), GAT),
    **dict.fromkeys(("gde", "gode"), ODE),
    **dict.fromkeys(("lanczosnet", "adalanczosnet"), LANCZOS),
    "monet": {**NETWORK, "model.kernels": Choice(1, 2, 3, 4)},
    "cgnn": {**NETWORK, "scheme.time": LogUniform(1.0, 30.0)},
}
"""What a search changes of each recipe, except those of Table 1's networks and the published settings (``paper``); each
space contains the recipe itself on every dataset."""

LITTLE_DECAY: Space = {"train.weight_decay": Uniform(0.0, 0.01), "train.attention_decay": Uniform(0.0, 0.01)}
DATASETS: Mapping[str, Space] = {
    "citeseer": {"train.weight_decay": LogUniform(3e-4, 0.5)},
    "coauthor-cs": {"train.lr": LogUniform(1e-4, 2e-2)},
    "ogbn-arxiv": {**LITTLE_DECAY, "model.pos": Choice(32, 64, 98, 128)},
    **dict.fromkeys(("ogbn-products", "ogbn-papers100M"), LITTLE_DECAY),
}
"""Other distributions on particular datasets, for all recipes."""


def space_of(config: RunConfig) -> Space:
    """Return the space of a recipe on a dataset; the width of positions is in it if the model has any."""
    name = config.recipe.removesuffix(TUNED)
    if name not in SPACES:
        raise UnknownName("recipe to tune", name, SPACES)
    encoded = config.model.kind == "blend" and config.position.kind != "none"
    positions: Space = {"model.pos": Choice(8, 16, 32, 64)} if encoded else {}
    return {**SPACES[name], **positions, **DATASETS.get(config.dataset, {})}
