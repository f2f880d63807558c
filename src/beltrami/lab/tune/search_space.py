"""Space: the settings that a search may change, and the spaces of the recipes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from random import Random
from types import MappingProxyType
from typing import Any

from beltrami.config.spec import RunConfig
from beltrami.errors import UnknownName
from beltrami.lab.tune.distribution import Choice, Distribution, LogUniform, Uniform, Whole

ABSENT = object()  # the value of a setting that the chosen kinds do not have
TUNED = "-tuned"  # what a search adds to the name of the recipe that it began with


@dataclass(frozen=True)
class SearchSpace:
    """Spans by the dotted names of settings; a point of it is drawn setting by setting, independently.

    The draw of a setting depends on the seed, the point's number and the setting's name, and on nothing else: so a
    point is the same whoever asks and in which order, and a further setting leaves the draws of the others as they are.
    """

    spans: Mapping[str, Distribution]

    def settings(self, number: int, *, seed: int) -> dict[str, Any]:
        """The settings of a point, by name."""
        return {name: span.at(Random(f"{seed} {number} {name}").random()) for name, span in self.spans.items()}

    def without(self, names: set[str]) -> "SearchSpace":
        """The space in which some settings stay as they are."""
        return SearchSpace({name: span for name, span in self.spans.items() if name not in names})

    def strangers(self, config: RunConfig) -> list[str]:
        """The settings whose value in the configuration lies outside of its span."""
        values = {name: value_of(config, name) for name in self.spans}
        return [
            name for name, span in self.spans.items() if values[name] is not ABSENT and not span.holds(values[name])
        ]


def value_of(config: RunConfig, name: str) -> Any:
    """Return a setting by its dotted name; ``ABSENT`` where the chosen kinds do not have it."""
    value: Any = config
    return reduce(lambda group, part: getattr(group, part, ABSENT), name.split("."), value)


COMMON: Mapping[str, Distribution] = {
    "model.dropout": Uniform(0.0, 0.8),
    "model.input_dropout": Uniform(0.0, 0.8),
    "train.optimiser": Choice("adam", "adamax", "rmsprop"),
    "train.lr": LogUniform(5e-4, 5e-2),
    "train.weight_decay": LogUniform(1e-4, 0.2),
}
FLOW: Mapping[str, Distribution] = {
    **COMMON,
    "model.feat": Choice(32, 64, 80, 128),
    "diffusivity.over": Choice("rows", "columns", "both"),
    "flow.source": Choice(True, False),
    "stencil.loops": Uniform(0.0, 2.0),
    "scheme.time": LogUniform(1.0, 60.0),
}
ATTENTION: Mapping[str, Distribution] = {
    "diffusivity.width": Choice(8, 16, 32, 64, 128),
    "diffusivity.heads": Choice(1, 2, 4, 8),
    "diffusivity.link": Choice("softmax", "squareplus"),
    "train.attention_decay": LogUniform(1e-5, 1e-1),
}
SCORE: Mapping[str, Distribution] = {
    "diffusivity.width": Choice(16, 32, 64, 128),  # Pearson's needs two channels a head
    "diffusivity.kind": Choice("uniform", "scalar-cosine", "scaled-dot", "cosine", "pearson", "exp-kernel"),
}
INPUT: Mapping[str, Distribution] = {
    "stencil.reweight.kind": Choice("none", "similarity"),
    "stencil.reweight.sharpness": Uniform(0.0, 1.0),
    "stencil.add.kind": Choice("none", "neighbours"),
    "stencil.add.k": Choice(5, 10),
}
ACTION: Mapping[str, Distribution] = {
    "model.feat": Choice(32, 64, 80, 128),
    "flow.psi.kind": Choice("constant", "gauss", "perona-malik", "roughness"),
    "flow.psi.length": LogUniform(0.3, 10.0),
    "flow.attachment": Choice(True, False),
    "scheme.time": LogUniform(1.0, 12.0),
}
GRAPH: Mapping[str, Distribution] = {
    "stencil.k": Choice(16, 32, 64, 128),
    "stencil.restart": LogUniform(0.02, 0.3),
    "stencil.loops": Uniform(0.0, 1.0),
    "scheme.time": LogUniform(1.0, 60.0),
}
POSITION: Mapping[str, Distribution] = {"model.pos": Choice(8, 16, 32, 64)}
NETWORK: Mapping[str, Distribution] = {**COMMON, "model.width": Choice(16, 32, 64, 128)}
HEADS: Mapping[str, Distribution] = {"model.heads": Choice(4, 8), "model.attention_dropout": Uniform(0.0, 0.8)}
KRYLOV: Mapping[str, Distribution] = {"model.steps": Whole(5, 30)}
TIME: Mapping[str, Distribution] = {"scheme.time": Uniform(0.5, 4.0)}

SPACES: Mapping[str, Mapping[str, Distribution]] = MappingProxyType(
    {
        "blend": {**FLOW, **ATTENTION, **SCORE, **INPUT},
        "blend-knn": {**FLOW, **ATTENTION, **SCORE, **GRAPH},
        "uniform": FLOW,
        "polyakov": {**COMMON, **ACTION},
        "grand": {**FLOW, **ATTENTION},
        "gcn": NETWORK,
        "gat": {**NETWORK, **HEADS},
        "gat-ppr": {**NETWORK, **HEADS},
        "monet": {**NETWORK, "model.kernels": Whole(1, 4)},
        "sage-mean": NETWORK,
        "sage-maxpool": NETWORK,
        "cgnn": {**NETWORK, "scheme.time": LogUniform(1.0, 30.0)},
        "gde": {**NETWORK, **TIME},
        "gode": {**NETWORK, **TIME},
        "lanczosnet": {**NETWORK, **KRYLOV},
        "adalanczosnet": {**NETWORK, **KRYLOV},
    }
)
"""What a search may change of each recipe but those of Table 1's networks; every span holds the recipe's own value on
every dataset."""

DATASETS: Mapping[str, Mapping[str, Distribution]] = MappingProxyType(
    {
        "citeseer": {"train.weight_decay": LogUniform(3e-4, 0.5)},
        "coauthor-cs": {"train.lr": LogUniform(1e-4, 2e-2)},
        "ogbn-arxiv": {
            "train.weight_decay": Uniform(0.0, 0.01),
            "train.attention_decay": Uniform(0.0, 0.01),
            "model.pos": Choice(32, 64, 98, 128),
        },
    }
)
"""Where the settings of a dataset lie elsewhere, whatever the recipe."""


def space_of(config: RunConfig) -> SearchSpace:
    """The space of a recipe on a dataset; the width of positions is in it where there are any to encode."""
    name = config.recipe.removesuffix(TUNED)
    if name not in SPACES:
        raise UnknownName("recipe to tune", name, SPACES)
    spans = dict(SPACES[name])
    if config.model.kind == "blend" and config.position.kind != "none":
        spans.update(POSITION)
    return SearchSpace({**spans, **DATASETS.get(config.dataset, {})})
