"""Training: tasks, the training loop, callbacks, validation along the flow, and results."""

from beltrami.data.file import write_atomically
from beltrami.train.callback import Callback, Epoch, JSONLines, TensorBoard
from beltrami.train.checkpoint import Checkpoints
from beltrami.train.fitting import Fitting, fit, fit_many, start_fit
from beltrami.train.loop import Fit, TrainingWarning
from beltrami.train.program import LossStep
from beltrami.train.self_training import self_training_labels
from beltrami.train.state import TrainingState
from beltrami.train.task import Classification, MultiLabel, Regression, Task, accuracy, per_class_accuracy
from beltrami.train.training import Consistency, Distillation, Training, count_parameters, seeded
from beltrami.train.validation import TimeGrid, ValidationScore, predict, read_test
from beltrami.train.weights import load_weights, save_weights

__all__ = [
    "fit", "fit_many", "start_fit", "Fitting", "Training", "Fit", "TimeGrid", "Consistency", "Distillation", "LossStep",
    "Checkpoints", "TrainingState", "TrainingWarning",
    "Task", "Classification", "MultiLabel", "Regression", "accuracy", "per_class_accuracy",
    "Epoch", "Callback", "JSONLines", "TensorBoard",
    "ValidationScore", "predict", "read_test", "self_training_labels",
    "count_parameters", "seeded", "write_atomically", "save_weights", "load_weights",
]  # fmt: skip
