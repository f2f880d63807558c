"""Training: fit a model, read its accuracy along time, keep what was found."""

from beltrami.data.file import write_atomically
from beltrami.train.adopt import adopt
from beltrami.train.checkpoint import load_weights, save_weights
from beltrami.train.crew import Crew
from beltrami.train.descent import Descent
from beltrami.train.evaluate import Horizon, Reading, accuracy, predict, read_test, validate
from beltrami.train.fit import Epoch, Fit, Training, count_parameters
from beltrami.train.objective import Consistency, objective
from beltrami.train.result import RunResult, versions
from beltrami.train.rounds import fit, fit_many
from beltrami.train.seed import seeded

__all__ = [
    "fit",
    "fit_many",
    "Crew",
    "adopt",
    "Training",
    "Fit",
    "Epoch",
    "Consistency",
    "objective",
    "Descent",
    "Horizon",
    "Reading",
    "accuracy",
    "validate",
    "predict",
    "read_test",
    "count_parameters",
    "RunResult",
    "versions",
    "write_atomically",
    "save_weights",
    "load_weights",
    "seeded",
]
