"""Build the network and the training of a run on rows."""

from dataclasses import asdict
from functools import partial

from torch import Tensor

from beltrami.config.build import OPTIMISERS
from beltrami.config.parser import parse
from beltrami.config.spec_rows import RowConfig, RowTrainSpec
from beltrami.model.row_network import RowNetwork
from beltrami.scheme import Exponential
from beltrami.train import TimeGrid, Training, seeded


def build_row_network(
    config: RowConfig, *, features: int, num_classes: int, mean: Tensor | None = None, scale: Tensor | None = None
) -> RowNetwork:
    """Return the network for features with this mean and scale, from the current random state."""
    spec = config.model
    return RowNetwork(
        features,
        num_classes,
        times=config.times,
        feat=spec.feat,
        hidden=spec.hidden,
        dropout=spec.dropout,
        input_dropout=spec.input_dropout,
        mean=mean if spec.standardise else None,
        scale=scale if spec.standardise else None,
        scheme=Exponential(rtol=config.rtol, atol=0.0),
    )


def build_row_training(spec: RowTrainSpec) -> Training:
    """Return how to train on rows; the batch is an argument of ``fit_rows``."""
    return Training(
        spec.epochs,
        partial(OPTIMISERS[spec.optimiser], lr=spec.lr),
        weight_decay=spec.weight_decay,
        patience=spec.patience,
        time_grid=TimeGrid(1.0),
        ema=spec.ema,
    )


def check_row_settings(config: RowConfig) -> None:
    """Refuse values that no run can have, before data are read: a network for one feature is built."""
    parse(RowConfig, asdict(config))
    with seeded(0):
        build_row_network(config, features=1, num_classes=2)
    build_row_training(config.train)
    for time in config.times:
        Exponential(rtol=config.rtol, atol=0.0).check_times((0.0, time))
