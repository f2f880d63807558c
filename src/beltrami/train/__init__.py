"""Training: tasks, the training loop, callbacks, validation along the flow, and results."""

from beltrami.data.file import write_atomically
from beltrami.train.callback import Callback, Epoch, JSONLines, TensorBoard
from beltrami.train.fitting import Fitting, fit, fit_many, self_training_labels, start_fit
from beltrami.train.loop import Fit
from beltrami.train.objective import Consistency, LossStep
from beltrami.train.task import Classification, MultiLabel, Regression, Task, accuracy, per_class_accuracy
from beltrami.train.training import Training, count_parameters, seeded
from beltrami.train.validation import TimeGrid, ValidationScore, predict, read_test
from beltrami.train.weights import load_weights, save_weights

__all__ = [
    "fit",
    "fit_many",
    "start_fit",
    "Fitting",
    "Training",
    "Fit",
    "Task",
    "Classification",
    "MultiLabel",
    "Regression",
    "Epoch",
    "Callback",
    "JSONLines",
    "TensorBoard",
    "Consistency",
    "LossStep",
    "self_training_labels",
    "TimeGrid",
    "ValidationScore",
    "predict",
    "read_test",
    "accuracy",
    "per_class_accuracy",
    "count_parameters",
    "write_atomically",
    "save_weights",
    "load_weights",
    "seeded",
]
