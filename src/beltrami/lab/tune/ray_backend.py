"""Engine: Ray Tune as what runs the trials of a search on a cluster. Importing it imports Ray."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ray import tune
from ray.tune.schedulers import FIFOScheduler, TrialScheduler

from beltrami.errors import in_words
from beltrami.lab.ray_cluster import Cluster
from beltrami.lab.resources import WorkerEnvironment
from beltrami.lab.tune.scheduler import Scheduler
from beltrami.lab.tune.search import Search
from beltrami.lab.tune.trial import Progress, attempt

QUIET = {
    "RAY_AIR_NEW_OUTPUT": "0",  # which prints tables of its own, however low its voice
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # relative paths stay what they are
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # our ledger is the only book
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # an interrupt is an interrupt
}


class RayBackend:
    """Trials on a cluster, inside its block."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def run(self, numbers: Sequence[int], clerk: Scheduler) -> None:
        """Try these trials of the clerk's search, as many at a time as there is room for."""
        os.environ.update(QUIET)
        share = self.cluster.share
        tune.run(
            _trainable(clerk.search, clerk.milestones, device=share.device, surroundings=share.surroundings()),
            config={"number": tune.grid_search(list(numbers))},
            resources_per_trial={"cpu": share.cpus, "gpu": share.gpus},
            scheduler=_Scheduler(clerk),
            callbacks=[_Listener(clerk)],
            storage_path=str(self.cluster.folder / "tune"),
            reuse_actors=True,  # to start a process takes longer than many a trial
            raise_on_failed_trial=False,
            verbose=0,
        )


class _Scheduler(FIFOScheduler):  # type: ignore[misc]
    """Trials in their order, stopped where the clerk says so."""

    def __init__(self, clerk: Scheduler) -> None:
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

    def __init__(self, clerk: Scheduler) -> None:
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
    search: Search, milestones: Sequence[int], *, device: str, surroundings: WorkerEnvironment
) -> Callable[[dict[str, Any]], None]:
    """What Ray calls in a process of its own. Only milestones are reported: a report is a wait."""

    def trainable(config: dict[str, Any]) -> None:
        surroundings.enter()

        def send(progress: Progress) -> None:
            if progress.final is not None or progress.epochs in milestones:
                tune.report(asdict(progress))

        try:
            attempt(search.trial(config["number"]), send, device=device)
        except Exception as error:
            tune.report({"error": in_words(error)})

    return trainable
