"""Workers for tests of executors; other processes import them from here."""

import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import torch

from beltrami.errors import UnknownName
from beltrami.lab.executor import Finished, JobReport, OnEpoch


class CountingWorker:
    """Counts to the job's number and reports every number on the way; some jobs are special."""

    def run(self, job: Any, on_epoch: OnEpoch) -> Generator[JobReport | Finished, None, None]:
        if job == "die":
            os._exit(1)
        if job == "raise":
            raise UnknownName("thing", "that", ["other"])
        if job == "environment":
            yield Finished((os.getpid(), torch.get_num_threads(), os.environ["BELTRAMI_CACHE"]))
            return
        if job == "unclean":
            yield Finished(os.getpid(), clean=False)
            return
        if isinstance(job, Path):  # ends when two such jobs run
            (job / str(os.getpid())).touch()
            while len(list(job.iterdir())) < 2:
                time.sleep(0.01)
            yield Finished(os.getpid())
            return
        for number in range(job):
            on_epoch(number)
            yield JobReport(number)
        yield Finished(job)


class ForeignWorker(CountingWorker):
    """A worker whose module the cluster does not have."""

    def __reduce__(self) -> Any:
        return __import__, ("beltrami.of_tomorrow",)
