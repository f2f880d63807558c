"""Keys: digests that tell the runs of a study apart."""

import hashlib
import json
from dataclasses import replace

from beltrami.config.parser import departures
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
