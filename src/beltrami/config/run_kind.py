"""What the run of a configuration file was trained on, and the refusal of a file of another kind of run."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from beltrami.errors import DataError
from beltrami.file_limits import read_json

RunKind = Literal["dataset", "blocks", "rows"]
NAMES: Mapping[RunKind, str] = {
    "dataset": "a run on a dataset",
    "blocks": "a run in blocks on a graph folder",
    "rows": "a run of the recipe precomputed",
}


def run_kind(path: Path) -> RunKind:
    """Return the kind of the run whose configuration is in a file; ``dataset`` if the file cannot be read, of which the
    reader of that configuration says more."""
    try:
        values = json.loads(read_json(path))
    except (OSError, ValueError, RecursionError, DataError):
        return "dataset"
    if not isinstance(values, Mapping):
        return "dataset"
    if values.get("recipe") == "precomputed":
        return "rows"
    return "blocks" if {"graph", "run"} <= set(values) else "dataset"


def check_dataset_run(path: Path) -> None:
    """Refuse a configuration file of a run whose graph is read from its folder."""
    kind = run_kind(path)
    if kind != "dataset":
        remedy = f"{NAMES[kind]} is for `beltrami evaluate` and `beltrami predict`"
        raise DataError(f"{path} cannot be used here: {remedy}.")
