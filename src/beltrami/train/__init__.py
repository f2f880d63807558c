"""Training: fit a model, read its accuracy along time, keep what was found."""

from beltrami.data.file import write_atomically
from beltrami.train.checkpoint import load_weights, save_weights
from beltrami.train.crew import Crew
from beltrami.train.fit import Epoch, Fit, Training, count_parameters
from beltrami.train.loss_step import LossStep
from beltrami.train.objective import Consistency, objective
from beltrami.train.rounds import fit, fit_many
from beltrami.train.seed import seeded
from beltrami.train.self_training import self_training_labels
from beltrami.train.validation import TimeGrid, ValidationScore, accuracy, predict, read_test, validate

__all__ = [
    "fit",
    "fit_many",
    "Crew",
    "self_training_labels",
    "Training",
    "Fit",
    "Epoch",
    "Consistency",
    "objective",
    "LossStep",
    "TimeGrid",
    "ValidationScore",
    "accuracy",
    "validate",
    "predict",
    "read_test",
    "count_parameters",
    "write_atomically",
    "save_weights",
    "load_weights",
    "seeded",
]
