"""Training on several processes by the command line: the options, and the program of each worker."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from beltrami.cli.graph_options import read_duration
from beltrami.cli.launcher import LAUNCHED, LocalStarter, Starter, launch, reported_once

if TYPE_CHECKING:
    from torch import Tensor

    from beltrami.cli.train_run import Running
    from beltrami.config import RunConfig
    from beltrami.distributed import Workers
    from beltrami.model import Classifier, Inputs
    from beltrami.result import RunResult
    from beltrami.train import Checkpoints, Epoch

WorkerCount = Annotated[
    int | None, Option("--workers", min=1, help="Train on this number of processes, with the same results.")
]
Parts = Annotated[
    str | None, Option(help="Parts of the nodes that processes share: a number, 8 by default, or a file FILE.npy.")
]
Timeout = Annotated[str | None, Option(help="How long workers wait for each other: a time such as 10m, the default.")]
NEVER = 10**9  # epochs


@dataclass(frozen=True)
class SeveralWorkers:
    """The options of a training on several processes."""

    workers: int | None
    parts: str | None
    timeout: str | None
    address: str | None = None

    def __post_init__(self) -> None:
        _ = self.seconds
        if self.parts is not None and not ((self.parts.isdecimal() and int(self.parts)) or self.parts.endswith(".npy")):
            raise ValueError(f"`--parts` takes a number of parts or a file FILE.npy; got {self.parts!r}.")
        if self.parts is not None and self.parts.isdecimal() and (self.workers or 1) > int(self.parts):
            raise ValueError(f"`--workers {self.workers}` needs at least as many parts; got `--parts {self.parts}`.")
        for option, value in {"--workers": self.workers, "--address": self.address}.items():
            if value is not None and "RANK" in os.environ and LAUNCHED not in os.environ:
                raise ValueError(f"`{option}` starts processes, and torchrun has started them already: leave it out.")
        if self.timeout is not None and not (self.is_asked or self.workers):
            raise ValueError("`--timeout` is for several workers: add `--workers`, or leave it out.")
        if self.address is not None and self.workers is None:
            raise ValueError("`--address` is for several workers: add `--workers`, or leave it out.")
        if self.address is not None and self.address.startswith("ray://"):
            raise ValueError("`--address ray://...` is for clients outside a cluster: use auto on one of its machines.")

    @property
    def given(self) -> dict[str, object]:
        """The options by their flags, and whether torchrun started this process."""
        given = {"--workers": self.workers, "--address": self.address, "--parts": self.parts}
        return {**given, "--timeout": self.timeout, "torchrun": _is_worker()}

    @property
    def launches(self) -> bool:
        """Whether this process is to start workers."""
        return self.workers is not None and LAUNCHED not in os.environ

    @property
    def is_asked(self) -> bool:
        """Whether this process trains by parts, with others or alone."""
        return self.parts is not None or _is_worker()

    @property
    def seconds(self) -> float:
        """How long workers wait for each other."""
        return 600.0 if self.timeout is None else read_duration(self.timeout, option="--timeout")

    def train(self, config: "RunConfig", running: "Running", *, logs: Sequence[Path], compare: int | None) -> None:
        """Train a configuration by parts: start workers, or be one."""
        if compare:
            raise ValueError("`--compare` trains in one process: leave it out, or `--workers` and `--parts`.")
        from beltrami.config.build import build_classifier
        from beltrami.distributed.parted_model import check_model

        positions = int(config.position.kind != "none")
        check_model(build_classifier(config, features=1, positions=positions, num_classes=1))
        if self.launches:
            assert self.workers is not None
            with self._starter(running.device) as starter:
                launch(self.workers, starter)
        else:
            train_worker(config, running, self, logs=logs)

    @contextmanager
    def _starter(self, device: str) -> Iterator[Starter]:
        """Yield the starter of the workers: on this machine, or on a Ray cluster."""
        assert self.workers is not None
        if self.address is None:
            yield LocalStarter(max(1, (os.cpu_count() or 1) // self.workers))
            return
        from beltrami.cli.ray_workers import RayStarter

        with RayStarter.joined(self.address, device) as starter:
            yield starter

    def partition(self, inputs: "Inputs") -> "Tensor":
        """Return the part of each node."""
        from beltrami.distributed import partition_nodes, read_partition

        if self.parts is None:
            return partition_nodes(inputs.edges)
        if self.parts.isdecimal():
            return partition_nodes(inputs.edges, int(self.parts))
        return read_partition(Path(self.parts), num_nodes=inputs.edges.num_nodes)


def train_worker(config: "RunConfig", running: "Running", several: SeveralWorkers, *, logs: Sequence[Path]) -> None:
    """Train a configuration by parts, together with the other workers. The first one reads and writes the files of the
    run and prints; the others keep theirs in a temporary folder."""
    from beltrami.distributed import join_workers
    from beltrami.lab.executor import exit_after
    from beltrami.precompute import resolve_files

    if LAUNCHED in os.environ:
        Thread(target=exit_after, args=(int(os.environ[LAUNCHED]),), daemon=True).start()
    with reported_once(), join_workers(device=running.device, timeout=several.seconds) as workers:
        running = replace(running, device=str(workers.device))
        if workers.rank:
            running = replace(running, out=None, quiet=True, json=False)
        with workers.together():
            config = resolve_files(config)
        workers.check_equal("settings", hashlib.sha256(f"{config.to_json()} {several.parts}".encode()).hexdigest())
        _train(config, running, several, workers, logs)


def _train(
    config: "RunConfig", running: "Running", several: SeveralWorkers, workers: "Workers", logs: Sequence[Path]
) -> None:
    from beltrami.cli.resumable import open_folder, read_finished
    from beltrami.cli.train_run import fit_recipe, followed, name_of
    from beltrami.config.parser import read_config
    from beltrami.report.terminal import print_run
    from beltrami.run import save_run
    from beltrami.run_folder import CHECKPOINT, is_finished
    from beltrami.train import Checkpoints

    first, about = workers.rank == 0, json.loads(config.to_json())
    with ExitStack() as stack:
        with workers.together():
            following = followed(config, logs if first else [])
            opened = open_folder(name_of(config), about, running, read_config) if first else _temporary()
            folder = stack.enter_context(opened)
            finished = first and running.resume and is_finished(folder)
            result = read_finished(folder, about, read_config) if finished else None
            state = folder / CHECKPOINT
            content = state.read_bytes() if first and state.exists() else b""
        stack.enter_context(running.printing())
        if not workers.share("finished" if finished else "")[0]:
            content = workers.send_file(content)
            if content and not first:
                state.write_bytes(content)
            checkpoints = Checkpoints(state, about, **(running.every if first else {"epochs": NEVER}))
            trainer = PartedTrainer(several, workers, running.device)
            found, model = fit_recipe(config, running, folder, checkpoints, following=following, trainer=trainer)
            with workers.together():
                if first:
                    result = save_run(folder, config, found, model)
        if result is not None:
            print_run(result, folder=folder)
    if running.json and result is not None:
        typer.echo(result.to_json())


class PartedTrainer:
    """Trains on a dataset by parts, together with the other workers."""

    def __init__(self, several: SeveralWorkers, workers: "Workers", device: str) -> None:
        self.several, self.workers, self.device = several, workers, device

    def open(self, config: "RunConfig", progress: Callable[..., None]) -> None:
        """Load the problem; the first worker loads it before the others, which then find its files in the cache."""
        from beltrami.run import load_problem

        for turn in (True, False):
            with self.workers.together():
                if turn == (self.workers.rank == 0):
                    self.problem = load_problem(config, device=self.device, progress=progress)

    def run(
        self, config: "RunConfig", callbacks: Sequence[Any], checkpoints: "Checkpoints"
    ) -> "tuple[RunResult, Classifier]":
        """Train together, and stop together once one worker was told to stop."""
        import torch

        from beltrami.run import run_config

        def stop_together(epoch: "Epoch") -> None:
            told = torch.tensor([bool(checkpoints.stop)], dtype=torch.uint8, device=self.workers.device)
            checkpoints.stop = bool(self.workers.gather(told, [1] * self.workers.size).any())

        return run_config(
            config,
            problem=self.problem,
            callbacks=[*callbacks, stop_together],
            checkpoints=checkpoints,
            parted=self._parted,
        )

    def _parted(self, model: "Classifier", inputs: "Inputs") -> "Classifier":
        """Return the model by parts."""
        from beltrami.distributed import PartedModel

        with self.workers.together():
            part = self.several.partition(inputs)
            found = PartedModel(model, inputs, part, self.workers)
        self.workers.check_equal("parts", hashlib.sha256(part.cpu().numpy().tobytes()).hexdigest())
        return found


def _is_worker() -> bool:
    """Return whether torchrun, or the launcher, started this process as one of several."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


@contextmanager
def _temporary() -> Iterator[Path]:
    with TemporaryDirectory(prefix="beltrami-") as folder:
        yield Path(folder)
