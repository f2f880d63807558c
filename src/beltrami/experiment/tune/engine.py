"""Engine: Ray Tune as the place where trials run, on this machine or on a cluster. Importing it imports Ray."""

import logging
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

import ray
import torch
from ray import tune
from ray.tune.schedulers import FIFOScheduler, TrialScheduler

from beltrami.errors import DataError
from beltrami.experiment.study.conduct import in_words
from beltrami.experiment.tune.clerk import Clerk
from beltrami.experiment.tune.search import Search
from beltrami.experiment.tune.trial import Progress, attempt

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is told to anybody
    "RAY_AIR_NEW_OUTPUT": "0",  # which prints tables of its own, however low its voice
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # relative paths stay what they are
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # our ledger is the only book
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # an interrupt is an interrupt
}
PLACES = ("BELTRAMI_DATA", "BELTRAMI_CACHE")
STORE = 100 * 2**20  # bytes of shared memory: what trials report is small
PATIENCE = 5.0  # seconds for a cluster to answer
LONGEST = 24  # characters of a temporary folder under which Ray's sockets still find room


class Engine:
    """Ray, from the beginning of a block to its end: then none of its processes and files on this machine lives on.

    Args:
        device: ``cpu`` or ``cuda``, where a trial computes.
        cpus: cores of a trial, and as many threads.
        gpus: its share of GPUs, such as 0.25 for four trials on each.
        address: of an existing cluster, such as ``auto``; None for a Ray of one's own on this machine. On a cluster
            the library and the data are needed on every node, in the same places.
    """

    def __init__(self, *, device: str, cpus: float, gpus: float, address: str | None = None) -> None:
        self.device, self.cpus, self.gpus, self.address = device, cpus, gpus, address

    def __enter__(self) -> "Engine":
        os.environ.update(QUIET)
        logging.getLogger("ray").setLevel(logging.CRITICAL)
        place = tempfile.gettempdir() if len(tempfile.gettempdir()) <= LONGEST else "/tmp"
        self._folder = Path(tempfile.mkdtemp(prefix="beltrami-", dir=place))
        try:
            self._start()
            self._check_resources()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        ray.shutdown()
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, numbers: Sequence[int], clerk: Clerk) -> None:
        """Try these trials of the clerk's search, as many at a time as there is room for."""
        tune.run(
            _trainable(clerk.search, clerk.milestones, device=self.device, threads=max(1, int(self.cpus))),
            config={"number": tune.grid_search(list(numbers))},
            resources_per_trial={"cpu": self.cpus, "gpu": self.gpus},
            scheduler=_Scheduler(clerk),
            callbacks=[_Listener(clerk)],
            storage_path=str(self._folder / "tune"),
            reuse_actors=True,  # to start a process takes longer than many a trial
            raise_on_failed_trial=False,
            verbose=0,
        )

    def _start(self) -> None:
        common: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        if self.address is None:
            own = {"include_dashboard": False, "object_store_memory": STORE, "_temp_dir": str(self._folder / "ray")}
            ray.init(address="local", **own, **common)
            return
        try:
            _knock(self.address)
            ray.init(address=self.address, **common)
        except (OSError, RuntimeError, ValueError) as error:
            raise DataError(
                f"no Ray cluster answers at {self.address!r} ({in_words(error)[:200]}): check `--address`, and "
                "RAY_AUTH_TOKEN where the cluster asks for one, or leave it out to run on this machine."
            ) from error

    def _check_resources(self) -> None:
        """A trial that asks for more than there is would wait for ever."""
        held = ray.cluster_resources()
        for name, kind, wanted in (("--cpus-per-trial", "CPU", self.cpus), ("--gpus-per-trial", "GPU", self.gpus)):
            if wanted > held.get(kind, 0):
                raise ValueError(f"`{name}` asks for {wanted:g}, but Ray has {held.get(kind, 0):g} {kind}s in all.")


def _knock(address: str) -> None:
    """Miss a cluster that is not there now: Ray itself takes minutes for it."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()


class _Scheduler(FIFOScheduler):  # type: ignore[misc]
    """Trials in their order, stopped where the clerk says so."""

    def __init__(self, clerk: Clerk) -> None:
        super().__init__()
        self.clerk = clerk

    def on_trial_result(self, tune_controller: Any, trial: Any, result: Mapping[str, Any]) -> Any:
        number = trial.config["number"]
        if "error" in result:
            self.clerk.fail(number, result["error"])
            return TrialScheduler.CONTINUE
        progress = Progress(tuple(result["by_epoch"]), result["seconds"], result["final"])
        return TrialScheduler.CONTINUE if self.clerk.hear(number, progress) else TrialScheduler.STOP


class _Listener(tune.Callback):  # type: ignore[misc]
    """Tells the clerk of the beginnings and the ends."""

    def __init__(self, clerk: Clerk) -> None:
        self.clerk = clerk

    def on_trial_start(self, iteration: int, trials: Sequence[Any], trial: Any, **info: Any) -> None:
        self.clerk.begin(trial.config["number"])

    def on_trial_complete(self, iteration: int, trials: Sequence[Any], trial: Any, **info: Any) -> None:
        self.clerk.end(trial.config["number"])

    def on_trial_error(self, iteration: int, trials: Sequence[Any], trial: Any, **info: Any) -> None:
        number = trial.config["number"]
        self.clerk.fail(number, "the trial's process died: the machine may be short of memory")
        self.clerk.end(number)


def _trainable(
    search: Search, milestones: Sequence[int], *, device: str, threads: int
) -> Callable[[dict[str, Any]], None]:
    """What Ray calls in a process of its own. Only milestones are reported: a report is a wait."""
    places = {name: os.path.abspath(os.environ[name]) for name in PLACES if os.environ.get(name)}

    def trainable(config: dict[str, Any]) -> None:
        os.environ.update(places)
        torch.set_num_threads(threads)

        def send(progress: Progress) -> None:
            if progress.final is not None or progress.epochs in milestones:
                tune.report(asdict(progress))

        try:
            attempt(search.trial(config["number"]), send, device=device)
        except Exception as error:
            tune.report({"error": in_words(error)})

    return trainable
