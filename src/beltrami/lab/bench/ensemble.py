"""The suite ``ensemble``: many seeds trained together, against the same seeds one after the other."""

import time
from collections.abc import Generator, Sequence
from dataclasses import replace
from statistics import median

import torch

from beltrami.config import RunConfig
from beltrami.config.build import build_training
from beltrami.data import Split
from beltrami.lab.bench.measure import Measurement
from beltrami.lab.bench.problem import BenchProblem
from beltrami.lab.executor import Executor, Finished, OnEpoch, Processes
from beltrami.model import BLEND, Inputs
from beltrami.train import fit, fit_many, seeded

RUNS = {"cuda": 100, "cpu": 8}
ALONE = {"cuda": 3, "cpu": 1}  # runs one after the other, from which the time of all is estimated
EPOCHS = {"cuda": 50, "cpu": 20}
ROUNDS = 3  # on a CPU, together and alone in turns: other work on the machine then slows down both
SIZE = "cora"  # a hundred models of larger sizes do not fit into memory


def ensemble(device: str, sizes: Sequence[str]) -> list[Measurement]:
    """Measure the seconds per run, validation included, together and alone."""
    problem, kind = BenchProblem.load(SIZE, device=device), device.split(":")[0]
    config = replace(problem.config, train=replace(problem.config.train, epochs=EPOCHS[kind], patience=10**6))
    row: Measurement = {"size": SIZE, "origin": problem.origin, "runs": RUNS[kind], "epochs": EPOCHS[kind]}
    return [row | (_on_cpu(problem, config) if kind == "cpu" else _on_gpu(problem, config))]


def _on_gpu(problem: BenchProblem, config: RunConfig) -> Measurement:
    """Measure runs as one program, and single runs with and without a CUDA graph."""
    together = _seconds(problem, config, range(RUNS["cuda"]), together=True)
    row: Measurement = {"together_s_per_run": together}
    for name, eager in (("alone", False), ("alone_eager", True)):
        alone = _seconds(problem, config, range(ALONE["cuda"]), together=False, eager=eager)
        row |= {f"{name}_s_per_run": alone, f"{name}_ratio": round(alone / together, 2)}
    return row


def _on_cpu(problem: BenchProblem, config: RunConfig) -> Measurement:
    """Measure runs in processes of one thread on all cores, and single runs on as many threads. ``alone_ratio`` leaves
    out the start of the processes; ``hundred_ratio`` is of a hundred runs with it. Medians."""
    size, start = torch.get_num_threads(), time.perf_counter()
    with Processes(EnsembleWorker(problem.name), size) as executor:
        _run_all(executor, replace(config, train=replace(config.train, epochs=1)), runs=size)
        started = time.perf_counter() - start
        rounds = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            _run_all(executor, config, runs=RUNS["cpu"])
            together = (time.perf_counter() - start) / RUNS["cpu"]
            rounds.append((together, _seconds(problem, config, range(ALONE["cpu"]), together=False)))
    together, alone = (median(taken) for taken in zip(*rounds, strict=True))
    return {
        "processes": size,
        "start_s": started,
        "together_s_per_run": together,
        "alone_s_per_run": alone,
        "alone_ratio": round(median(alone / together for together, alone in rounds), 2),
        "hundred_ratio": round(100 * alone / (started + 100 * together), 2),
    }


class EnsembleWorker:
    """Trains pairs of seeds as one program each, on a problem that it loads once."""

    def __init__(self, size: str) -> None:
        self.size = size
        self._problem: BenchProblem | None = None

    def run(self, job: tuple[RunConfig, range], on_epoch: OnEpoch) -> Generator[Finished, None, None]:
        self._problem = self._problem or BenchProblem.load(self.size, device="cpu")
        yield Finished(_seconds(self._problem, *job, together=True, warm_up=False))


def _run_all(executor: Executor, config: RunConfig, *, runs: int) -> None:
    """Train runs on the executor, in jobs of two, or of one if there are not enough for all processes."""
    width = 2 if runs >= 2 * torch.get_num_threads() else 1
    waiting = [range(first, min(first + width, runs)) for first in range(0, runs, width)]
    while waiting or executor.busy:
        while waiting and executor.has_room:
            executor.submit((config, waiting.pop(0)))
        if executor.wait(lambda job, value: True)[1] is None:
            raise RuntimeError("a process of the ensemble died: the machine may be short of memory.")


def _seconds(
    problem: BenchProblem, config: RunConfig, seeds: range, *, together: bool, eager: bool = False, warm_up: bool = True
) -> float:
    """Return the seconds per run; a short training comes first to warm up."""
    training = replace(build_training(config.train), cuda_graph=False if eager else None)
    for chosen in (replace(training, epochs=2), training) if warm_up else (training,):
        models, (inputs, *_) = zip(*(fresh_model(problem, config, seed) for seed in seeds), strict=True)
        splits = [random_split(problem, seed) for seed in seeds]
        start = time.perf_counter()
        if together:
            fit_many(models, inputs, problem.dataset.y, splits, chosen)
        else:
            for model, split in zip(models, splits, strict=True):
                fit(model, inputs, problem.dataset.y, split, chosen)
        taken = time.perf_counter() - start
    return taken / len(seeds)


def fresh_model(problem: BenchProblem, config: RunConfig, seed: int) -> tuple[BLEND, Inputs]:
    """Return a model whose weights depend on the seed."""
    model, inputs = problem.model(config)
    with seeded(seed), torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.01 * torch.randn(parameter.shape).to(parameter.device))
    return model, inputs


def random_split(problem: BenchProblem, seed: int) -> Split:
    """Return a split whose validation nodes depend on the seed."""
    generator = torch.Generator().manual_seed(seed)
    train = problem.train
    val = (torch.rand(len(train), generator=generator) < 0.5).to(train.device) & ~train
    return Split(train, val, ~train & ~val, protocol="bench", seed=seed)
