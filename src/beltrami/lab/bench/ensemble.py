"""Ensemble: many seeds trained together, against the same one after the other."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

import torch

from beltrami.config import RunConfig
from beltrami.config.build import build_training
from beltrami.data import Split
from beltrami.lab.bench.problem import BenchProblem
from beltrami.lab.bench.report import Measurement
from beltrami.model import BLEND, Inputs
from beltrami.train import Training, fit, fit_many, seeded

RUNS = {"cuda": 100, "cpu": 8}
ALONE = {"cuda": 3, "cpu": 1}  # how many are trained one after the other, to know what all would take
EPOCHS = {"cuda": 50, "cpu": 20}
TURNS = 3  # on a CPU, of runs together and alone: other work on the machine then slows both
SMALL = ("cora",)  # a hundred of the larger ones are more than a machine holds


def ensemble(device: str, sizes: Sequence[str]) -> list[Measurement]:
    """Seconds of a run, validation included, made together or alone."""
    rows = []
    for size in [size for size in sizes if size in SMALL] or SMALL:
        case, kind = BenchProblem.load(size, device=device), device.split(":")[0]
        config = replace(case.config, train=replace(case.config.train, epochs=EPOCHS[kind], patience=10**6))
        row: Measurement = {"size": size, "origin": case.origin, "runs": RUNS[kind], "epochs": EPOCHS[kind]}
        rows.append(row | (_by_processes(case, config) if kind == "cpu" else _by_launches(case, config)))
    return rows


def _by_launches(case: BenchProblem, config: RunConfig) -> Measurement:
    """One program on a GPU, beside runs alone, recorded and not."""
    together = _seconds(case, config, RUNS["cuda"], fit_many)
    row: Measurement = {"together_s_per_run": together}
    for name, record in (("alone", None), ("alone_eager", False)):
        alone = _seconds(case, config, ALONE["cuda"], _fit_each, record=record)
        row |= {f"{name}_s_per_run": alone, f"{name}_ratio": round(alone / together, 2)}
    return row


def _by_processes(case: BenchProblem, config: RunConfig) -> Measurement:
    """One program on a CPU, beside runs one after the other. Medians."""
    turns = [
        (_seconds(case, config, RUNS["cpu"], fit_many), _seconds(case, config, ALONE["cpu"], _fit_each))
        for _ in range(TURNS)
    ]
    together, alone = (median(taken) for taken in zip(*turns, strict=True))
    return {
        "together_s_per_run": together,
        "alone_s_per_run": alone,
        "alone_ratio": round(median(alone / together for together, alone in turns), 2),
    }


Together = Callable[[list[BLEND], Inputs, torch.Tensor, list[Split], Training], object]


def _seconds(
    case: BenchProblem, config: RunConfig, runs: int, train: Together, *, record: bool | None = None, warm: bool = True
) -> float:
    """Of one run, the mean over ``runs``; to warm up, a first, short one is made that does not count."""
    training = replace(build_training(config.train), cuda_graph=record)
    for attempt in (replace(training, epochs=2), training) if warm else (training,):
        made = [_fresh(case, config, seed) for seed in range(runs)]
        splits = [_split(case, seed) for seed in range(runs)]
        start = time.perf_counter()
        train([model for model, _ in made], made[0][1], case.dataset.y, splits, attempt)
        taken = time.perf_counter() - start
    return taken / runs


def _fit_each(models: list[BLEND], inputs: Inputs, y: torch.Tensor, splits: list[Split], training: Training) -> None:
    for model, split in zip(models, splits, strict=True):
        fit(model, inputs, y, split, training)


def _fresh(case: BenchProblem, config: RunConfig, seed: int) -> tuple[BLEND, Inputs]:
    model, inputs = case.model(config)
    with seeded(seed), torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.01 * torch.randn(parameter.shape).to(parameter.device))
    return model, inputs


def _split(case: BenchProblem, seed: int) -> Split:
    generator = torch.Generator().manual_seed(seed)
    val = (torch.rand(len(case.train), generator=generator) < 0.5).to(case.train.device) & ~case.train
    return Split(case.train, val, ~case.train & ~val, protocol="bench", seed=seed)
