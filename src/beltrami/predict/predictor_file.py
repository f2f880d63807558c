"""The content of ``predictor.json``: types and ranges of what a predictor is made of."""

import math
from collections.abc import Mapping, Sequence
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
class AverageFacts:
    """Weights and temperatures of averaged ensembles, and the times of all but the first; see
    :class:`~beltrami.predict.trained_models.AveragedEnsemble`."""

    weights: list[float]
    temperatures: list[float]
    times: list[list[float]]

    def check(self, models: int) -> None:
        """Refuse numbers that no average has; an ensemble has this number of ``models``."""
        sizes = {len(self.weights), len(self.temperatures), 1 + len(self.times)}
        if len(sizes) > 1 or any(len(each) != models for each in self.times):
            raise ValueError("`average` has another number of weights, temperatures or times than ensembles")
        numbers = [*self.weights, *self.temperatures, *(time for each in self.times for time in each)]
        if not all(map(math.isfinite, numbers)) or min(self.weights) < 0 or abs(sum(self.weights) - 1) > 1e-6:
            raise ValueError("`average` has weights that are not shares of 1, or a number that is not finite")
        if min(self.temperatures) <= 0:
            raise ValueError("`average` has a temperature that is not positive")


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
    average: AverageFacts | None = None

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
        if facts.average is not None:
            facts.average.check(len(facts.times))
        return facts

    @property
    def all_times(self) -> list[list[float]]:
        """The times of the models of every ensemble."""
        return [self.times, *(self.average.times if self.average is not None else [])]


def check_times(times: Sequence[float], config: RunConfig) -> None:
    """Refuse times beyond those at which the training looked for the best one."""
    last = terminal_time(config.scheme) * getattr(config.train.time_grid, "multiple", 1.0)
    if not all(0 <= time <= last * (1 + 1e-6) for time in times):
        raise ValueError(f"`times` are not between 0 and {last:g}, where the flow of the configuration ends")
