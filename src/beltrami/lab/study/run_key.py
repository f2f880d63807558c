"""Identity: what tells one run of a study from another."""

import hashlib
import json
from dataclasses import replace

from beltrami.config.parse import departures
from beltrami.config.spec import RunConfig

LENGTH = 16  # hexadecimal characters of a digest


def key_of(config: RunConfig) -> str:
    """The digest of a run: every setting, the split's protocol and seed among them.

    Settings at their defaults are left out, so that a setting that comes to exist tomorrow leaves today's runs what
    they are.
    """
    named = {"dataset": config.dataset, "recipe": config.recipe, **departures(config)}
    text = json.dumps(named, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def setup_of(config: RunConfig) -> str:
    """The digest that runs share which differ by their seeds alone: only such runs have a mean."""
    return key_of(replace(config, seed=0, data=replace(config.data, split_seed=0)))
