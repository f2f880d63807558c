"""The result of a run, as a file."""

import json
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import torch
from torch import nn

import beltrami
from beltrami import train
from beltrami.arguments import AnyPath, checked
from beltrami.config.parser import read
from beltrami.config.spec import SCHEMA, RunConfig
from beltrami.config.spec_rows import RowConfig


@dataclass(frozen=True)
class RunResult:
    """What one run found. Accuracies, or another ``metric`` in their place, are percentages; times of the flow are in
    its own units."""

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
    metric: str = "accuracy"  # what val_accuracy and test_accuracy are: accuracy or roc-auc
    # Of the recipe precomputed: the times of the diffused features, their learned shares and the error bound.
    diffused: dict[str, Any] | None = None

    @property
    def metric_name(self) -> str:
        """The metric in words."""
        return "ROC AUC" if self.metric == "roc-auc" else self.metric

    def to_json(self) -> str:
        """Return the result as the text of a file."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=2)

    @staticmethod
    @checked
    def read(path: AnyPath) -> "RunResult":
        """Return the result in a file, which may be of the first release."""
        return read(RunResult, Path(path), what="result file")


class Accuracies(NamedTuple):
    """Validation and test accuracy, or another metric, and the test accuracy of each class, None for a class without
    test nodes; in percent."""

    val: float
    test: float
    per_class: list[float | None]


def result_of_fit(
    config: RunConfig | RowConfig,
    model: nn.Module,
    found: train.Fit,
    accuracies: Accuracies,
    *,
    dataset: str,
    split: dict[str, Any],
    device: torch.device,
) -> RunResult:
    """Return what every training knows of its result; attention, graph, metric and searches are left at defaults."""
    return RunResult(
        dataset=dataset,
        recipe=config.recipe,
        seed=config.seed,
        split=split,
        val_accuracy=accuracies.val,
        test_accuracy=accuracies.test,
        best_time=found.best.time,
        best_epoch=found.best_epoch,
        epochs=found.epochs,
        train_seconds=found.seconds,
        evaluations={"forward": found.stats.evaluations, "backward": found.stats.backward_evaluations},
        parameters=train.count_parameters(model.parameters()),
        attention_spread=0.0,
        device=torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        versions=versions(),
        per_class_accuracy=accuracies.per_class,
    )


def versions() -> dict[str, str]:
    """Return the versions that a result depends on, and the number of threads: on a CPU another gives other bits."""
    return {
        "beltrami": beltrami.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "threads": str(torch.get_num_threads()),
    }
