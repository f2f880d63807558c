"""Training aids: options of training that the paper does not have and that any model may have, as settings."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from beltrami.config.spec import RunConfig
from beltrami.config.spec_graph import NoneSpec, hints_of
from beltrami.errors import UnknownName

AIDS: Mapping[str, tuple[str, str, Any]] = {
    "consistency": ("train", "consistency", NoneSpec()),
    "self-training": ("train", "self_training", 0),
    "distillation": ("train", "distillation", NoneSpec()),
    "ema": ("train", "ema", 0.0),
    "similarity": ("stencil", "reweight", NoneSpec()),
    "neighbours": ("stencil", "add", NoneSpec()),
}
"""The aids by name, each with its group of settings, its setting and the value for none: consistency of several passes,
a second round of training with confident predictions as labels, rounds with the predictions of those before as soft
targets, an exponential moving average of the weights, edges
weighted by the similarity of the features, and edges added to the most similar nodes."""
ALL = tuple(AIDS)
WORDS: Mapping[str, tuple[str, ...]] = {"none": (), "same": ALL}


def with_aids(config: RunConfig, source: RunConfig, names: Collection[str]) -> RunConfig:
    """Return a configuration with the aids ``names`` of another, ``source``, and without all other aids. An aid that
    the model's graph has no setting for is left out: only graphs made of the input's edges can be reweighted."""
    for name in names:
        if name not in AIDS:
            raise UnknownName("training aid", name, AIDS)
    for name, (group, setting, none) in AIDS.items():
        part: Any = getattr(config, group)
        if setting in hints_of(type(part)):
            value = getattr(getattr(source, group), setting, none) if name in names else none
            changed: Any = {group: replace(part, **{setting: value})}
            config = replace(config, **changed)
    return config


def without_aids(config: RunConfig) -> RunConfig:
    """Return a configuration without training aids."""
    return with_aids(config, config, ())


def read_aids(text: str) -> tuple[str, ...]:
    """Return the aids that ``--aids`` names: ``none``, ``same`` for all, or names separated by commas."""
    if text in WORDS:
        return WORDS[text]
    names = tuple(filter(None, map(str.strip, text.split(","))))
    for name in names or ("",):
        if name not in AIDS:
            raise UnknownName("training aid", name, (*WORDS, *AIDS))
    return names


def aids_of(config: RunConfig) -> Sequence[str]:
    """Return the names of the aids that a configuration has."""
    return [
        name for name, (group, setting, none) in AIDS.items() if getattr(getattr(config, group), setting, none) != none
    ]
