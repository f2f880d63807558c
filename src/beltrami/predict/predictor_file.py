"""The content of ``predictor.json``: types and ranges of what a predictor is made of."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from beltrami.config.build_evolution import terminal_time
from beltrami.config.parser import parse
from beltrami.config.spec import RunConfig
from beltrami.data.preprocess import Preprocessing
from beltrami.data.target import TargetKind
from beltrami.predict.conformal import Conformal, ScoreKind


@dataclass(frozen=True)
class ConformalFacts:
    """The scores of the calibration nodes; see :class:`~beltrami.predict.conformal.Conformal`."""

    kind: ScoreKind
    scores: list[float]
    smoothing: float

    def build(self) -> Conformal:
        return Conformal(self.kind, torch.tensor(self.scores, dtype=torch.float64), self.smoothing)


@dataclass(frozen=True)
class CalibrationFacts:
    """From outputs to probabilities; see :class:`~beltrami.predict.predictor.Calibration`."""

    temperature: float
    centre: list[float]
    scale: list[float]
    conformal: ConformalFacts | None


@dataclass(frozen=True)
class PredictorFacts:
    """Targets, times, preprocessing and calibration of a predictor, and the digests of its other files."""

    kind: TargetKind
    names: list[str]
    times: list[float]
    preprocessing: Preprocessing
    calibration: CalibrationFacts
    record: dict[str, Any]
    files: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def parse(values: Mapping[str, Any]) -> "PredictorFacts":
        """Return the facts in a file; a ValueError says what is wrong with them."""
        facts = parse(PredictorFacts, values)
        calibration = facts.calibration
        numbers = (*facts.times, calibration.temperature, *calibration.centre, *calibration.scale)
        if not all(map(math.isfinite, numbers)) or calibration.temperature <= 0:
            raise ValueError("a time, a temperature or a scale is no positive number")
        if facts.kind == "numbers" and not len(facts.names) == len(calibration.centre) == len(calibration.scale):
            raise ValueError("`calibration` has another number of targets than `names`")
        return facts

    def check_times(self, config: RunConfig) -> None:
        """Refuse times beyond those at which the training looked for the best one."""
        last = terminal_time(config.scheme) * getattr(config.train.time_grid, "multiple", 1.0)
        if not all(0 <= time <= last * (1 + 1e-6) for time in self.times):
            raise ValueError(f"`times` are not between 0 and {last:g}, where the flow of the configuration ends")
