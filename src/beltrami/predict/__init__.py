"""Prediction with a confidence: calibrated probabilities, conformal sets and intervals, and their table."""

from beltrami.predict.conformal import Conformal, Guarantee, coverage_interval, empirical_coverage_interval
from beltrami.predict.model_average import ModelAverage
from beltrami.predict.predictions import NO_LABEL, ClassPredictions, NumberPredictions, Predictions, label_reaches
from beltrami.predict.probability import (
    bin_surplus,
    brier,
    expected_calibration_error,
    fit_temperature,
    match_confidence,
    negative_log_likelihood,
)

__all__ = ["fit_temperature", "match_confidence", "expected_calibration_error", "bin_surplus"]
__all__ += ["negative_log_likelihood", "brier", "ModelAverage"]
__all__ += ["Conformal", "Guarantee", "coverage_interval", "empirical_coverage_interval"]
__all__ += ["Predictions", "ClassPredictions", "NumberPredictions", "NO_LABEL", "label_reaches"]
