"""The result of a run, as a file."""

import json
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy
import torch

import beltrami
from beltrami.arguments import AnyPath, checked
from beltrami.config.parser import read
from beltrami.config.spec import SCHEMA


@dataclass(frozen=True)
class RunResult:
    """What one run found. Accuracies are percentages; times of the flow are in its own units."""

    dataset: str
    recipe: str
    seed: int
    split: dict[str, Any]
    val_accuracy: float
    test_accuracy: float
    best_time: float
    best_epoch: int
    epochs: int
    train_seconds: float
    evaluations: dict[str, int]
    parameters: int
    attention_spread: float
    device: str
    versions: dict[str, str]
    tried: int | None = None  # configurations compared on validation before this one was chosen, None if unknown
    # On test nodes, None for a class without any; empty in results of the first release.
    per_class_accuracy: list[float | None] = field(default_factory=list)
    graph: str = ""  # fingerprint of the dataset's graph; empty in results of earlier versions
    files: dict[str, str] = field(default_factory=dict)  # SHA-256 of the other files of the run, by name

    def to_json(self) -> str:
        """Return the result as the text of a file."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=2)

    @staticmethod
    @checked
    def read(path: AnyPath) -> "RunResult":
        """Return the result in a file, which may be of the first release."""
        return read(RunResult, Path(path), what="result file")


def versions() -> dict[str, str]:
    """Return the versions that a result depends on, and the number of threads: on a CPU another gives other bits."""
    return {
        "beltrami": beltrami.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "threads": str(torch.get_num_threads()),
    }
