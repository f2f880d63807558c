"""Ensemble: many seeds trained as one program, against the same one after the other."""

import time
from collections.abc import Sequence
from dataclasses import replace

import torch

from beltrami.bench.case import Case
from beltrami.bench.report import Row
from beltrami.data import Split
from beltrami.experiment import RunConfig
from beltrami.experiment.build import build_training
from beltrami.model import BLEND, Inputs
from beltrami.train import fit, fit_many, seeded

RUNS = {"cuda": 100, "cpu": 16}
ALONE = {"cuda": 3, "cpu": 3}  # how many are trained one after the other, to know what all would take
EPOCHS = {"cuda": 50, "cpu": 4}
SMALL = ("cora",)  # a hundred of the larger ones are more than a machine holds


def ensemble(device: str, sizes: Sequence[str]) -> list[Row]:
    """Seconds of a run, validation included, made together or alone."""
    rows = []
    for size in [size for size in sizes if size in SMALL] or SMALL:
        case, kind = Case.load(size, device=device), device.split(":")[0]
        config = replace(case.config, train=replace(case.config.train, epochs=EPOCHS[kind], patience=10**6))
        together = _seconds(case, config, RUNS[kind], many=True)
        row: Row = {"size": size, "origin": case.origin, "runs": RUNS[kind], "epochs": EPOCHS[kind]}
        row |= {"together_s_per_run": together}
        for name, record in (("alone", None), ("alone_eager", False)):
            if record is False and kind == "cpu":
                continue
            alone = _seconds(case, config, ALONE[kind], many=False, record=record)
            row |= {f"{name}_s_per_run": alone, f"{name}_ratio": round(alone / together, 2)}
        rows.append(row)
    return rows


def _seconds(case: Case, config: RunConfig, runs: int, *, many: bool, record: bool | None = None) -> float:
    """Of one run, the mean over ``runs``; a first, short one warms up and does not count."""
    training = replace(build_training(config.train), record=record)
    for attempt in (replace(training, epochs=2), training):
        made = [_fresh(case, config, seed) for seed in range(runs)]
        splits = [_split(case, seed) for seed in range(runs)]
        start = time.perf_counter()
        if many:
            fit_many([model for model, _ in made], made[0][1], case.dataset.y, splits, attempt)
        else:
            for (model, inputs), split in zip(made, splits, strict=True):
                fit(model, inputs, case.dataset.y, split, attempt)
        taken = time.perf_counter() - start
    return taken / runs


def _fresh(case: Case, config: RunConfig, seed: int) -> tuple[BLEND, Inputs]:
    model, inputs = case.model(config)
    with seeded(seed), torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.01 * torch.randn(parameter.shape).to(parameter.device))
    return model, inputs


def _split(case: Case, seed: int) -> Split:
    generator = torch.Generator().manual_seed(seed)
    val = (torch.rand(len(case.train), generator=generator) < 0.5).to(case.train.device) & ~case.train
    return Split(case.train, val, ~case.train & ~val, protocol="bench", seed=seed)
