"""The kind of a run by its configuration file: on a dataset, in blocks on a graph folder, or on rows."""

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
    """Return the kind of run of a configuration file; ``dataset`` if the file cannot be read, since the reader of that
    kind then explains the error."""
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
    """Refuse the configuration file of a run on a graph folder or on rows."""
    kind = run_kind(path)
    if kind != "dataset":
        remedy = "use `beltrami evaluate` or `beltrami predict`"
        raise DataError(f"{path} belongs to {NAMES[kind]}, which this command does not support: {remedy}.")
