"""RunResult: what one run found, as JSON."""

import json
import platform
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

import numpy
import torch

import beltrami
from beltrami.errors import DataError


@dataclass(frozen=True)
class RunResult:
    """One trained model and how it was judged. Accuracies are percentages; times of the flow are its own units.

    ``tried``: how many configurations were tried on validation before this one was settled on; None where nobody
    counted.
    """

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
    tried: int | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)

    @staticmethod
    def read(path: Path) -> "RunResult":
        """Read a result file; a :class:`DataError` says what is wrong with it."""
        try:
            values = json.loads(path.read_text())
        except FileNotFoundError:
            raise DataError(f"no result file at {path}: was the run finished? Train it again.") from None
        except (OSError, ValueError) as error:
            raise DataError(f"the result file {path} cannot be read ({error}): train the run again.") from None
        wanted = {field.name for field in fields(RunResult)}
        here = set(values) if isinstance(values, dict) else set()
        if not wanted - {"tried"} <= here <= wanted:  # older results do not say what was tried
            odd = ", ".join(sorted(wanted ^ here)) or "no object"
            raise DataError(
                f"the result file {path} is not one of ours (missing or foreign: {odd}): train the run again."
            )
        wrong = [field.name for field in fields(RunResult) if not _is_a(field.type, values.get(field.name))]
        if wrong:
            raise DataError(
                f"the result file {path} is not one of ours (of another type: {', '.join(wrong)}): train the run again."
            )
        return RunResult(**values)


def versions() -> dict[str, str]:
    """The versions a result depends on."""
    return {
        "beltrami": beltrami.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
    }


def _is_a(kind: Any, value: Any) -> bool:
    if isinstance(kind, UnionType):
        return value is None or any(_is_a(each, value) for each in get_args(kind) if each is not NoneType)
    origin = get_origin(kind) or kind
    wanted = (int, float) if origin is float else (origin,)
    return isinstance(value, wanted) and not isinstance(value, bool)
