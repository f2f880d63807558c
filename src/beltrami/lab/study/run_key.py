"""Keys: digests that tell the runs of a study apart."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from beltrami.config.spec import RunConfig

LENGTH = 16  # hexadecimal characters of a digest


def key_of(config: RunConfig) -> str:
    """Return the digest of a configuration, seeds included.

    Settings at their defaults are left out, so that a new setting does not change the keys of existing runs.
    """
    named = {"dataset": config.dataset, "recipe": config.recipe, **departures(config)}
    text = json.dumps(named, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def setup_of(config: RunConfig) -> str:
    """Return the digest of a configuration without its seeds: only runs that share it have a mean."""
    return key_of(replace(config, seed=0, data=replace(config.data, split_seed=0)))


def departures(config: RunConfig) -> dict[str, Any]:
    """Return every setting that is not at its default, by its dotted name."""
    plain = asdict(RunConfig(config.dataset, config.recipe, tried=config.tried))
    return dict(_departures(asdict(config), plain, ""))


def _departures(values: Mapping[str, Any], plain: Mapping[str, Any], prefix: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            found += _departures(value, plain[name], f"{prefix}{name}.")
        elif value != plain[name]:
            found.append((f"{prefix}{name}", value))
    return found
