"""Worker: does the runs of a study, in whatever process it is."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from beltrami.config.spec import RunConfig
from beltrami.errors import DataError, in_words
from beltrami.lab.study.run_key import setup_of
from beltrami.lab.study.work import Done, OnEpoch, Work
from beltrami.run import Problem, on_split


@dataclass(frozen=True)
class Failed:
    """Why runs that were to be one program have no outcomes.

    Args:
        why: in words.
        crowded: whether fewer of them may do.
    """

    why: str
    crowded: bool


Found = list[Done | str] | Failed
"""For each run what it found, or its error in words; or why there is nothing to tell of each."""


class Worker:
    """Does runs on a device. What it finds can be sent to another process: errors are words, and hold no memory.

    A problem is posed once for runs that are alone and differ by their seeds, as long as they come one after the other.
    """

    def __init__(self, work: Work, *, device: str) -> None:
        self.work, self.device = work, device
        self._setup = ""
        self._problem: Problem | str = ""

    def do(self, configs: Sequence[RunConfig], *, together: bool, on_epoch: OnEpoch) -> Found:
        """Do runs that differ by their seeds alone, as one program or one by one."""
        return self._many(configs, on_epoch) if together else [self._one(config, on_epoch) for config in configs]

    def _many(self, configs: Sequence[RunConfig], on_epoch: OnEpoch) -> Found:
        self._setup, self._problem = "", ""  # whose memory they may need
        try:
            found = self.work.many(configs, device=self.device, on_epoch=on_epoch)
        except (torch.OutOfMemoryError, MemoryError):
            return Failed("are too many for the memory", crowded=True)
        except DataError as error:
            return [in_words(error)] * len(configs)
        except Exception as error:
            return Failed(in_words(error), crowded=False)
        return [each if isinstance(each, Done) else in_words(each) for each in found]

    def _one(self, config: RunConfig, on_epoch: OnEpoch) -> Done | str:
        try:
            problem = self._pose(config)
            if isinstance(problem, str):
                return problem
            return self.work.one(config, on_split(problem, config), on_epoch=on_epoch)
        except Exception as error:
            return in_words(error)

    def _pose(self, config: RunConfig) -> Problem | str:
        """The problem of a run, or why there is none: what took long and failed is not tried again for every seed."""
        setup = setup_of(config)
        if setup != self._setup:
            self._setup, self._problem = setup, ""  # two problems may not fit
            try:
                self._problem = self.work.load_problem(config, device=self.device)
            except Exception as error:
                self._problem = in_words(error)
        return self._problem
