"""Share: what a piece of work gets of the machines of a cluster."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

LOCAL = "local"
"""The address of a Ray of one's own, on this machine."""
PLACES = ("BELTRAMI_DATA", "BELTRAMI_CACHE")
SLACK = 1e-9  # of quotients of decimal fractions


@dataclass(frozen=True)
class Resources:
    """Cores and GPUs of a trial or a batch.

    Args:
        unit: what has the share, ``trial`` or ``batch``: options are named after it.
        device: ``cpu`` or ``cuda``, where it computes.
        cpus: its cores, and as many threads.
        gpus: its GPUs, such as 0.25 for four on each.
    """

    unit: str
    device: str
    cpus: float
    gpus: float

    def __post_init__(self) -> None:
        if self.device not in ("cpu", "cuda"):
            raise ValueError(
                f"`--device` of a {self.unit} is cpu or cuda, and Ray chooses which GPU; got {self.device!r}."
            )
        if self.cpus <= 0 or self.gpus < 0:
            raise ValueError(
                f"a {self.unit} needs `--cpus-per-{self.unit}` above 0, no negative share of GPUs; got {self.cpus:g}, "
                f"{self.gpus:g}."
            )
        if (self.device == "cuda") != (self.gpus > 0):
            raise ValueError(
                f"`--gpus-per-{self.unit} {self.gpus:g}` and `--device {self.device}` contradict each other: change "
                "one."
            )

    @staticmethod
    def asked(unit: str, *, device: str, cpus: float | None, gpus: float | None) -> "Resources":
        """What is not said is one core, and one GPU where the device is one."""
        return Resources(unit, device, 1.0 if cpus is None else cpus, float(device == "cuda") if gpus is None else gpus)

    @property
    def threads(self) -> int:
        return max(1, int(self.cpus))

    def times_in(self, held: Mapping[str, float]) -> int:
        """How often it fits into what a machine holds; a fraction of a GPU is of one and the same."""
        by_cpu = math.floor(held.get("CPU", 0) / self.cpus + SLACK)
        if self.gpus == 0:
            return by_cpu
        gpus = held.get("GPU", 0)
        if self.gpus < 1:
            return min(by_cpu, int(gpus) * math.floor(1 / self.gpus + SLACK))
        return min(by_cpu, math.floor(gpus / self.gpus + SLACK))

    def check(self, machines: list[Mapping[str, float]]) -> None:
        """Refuse a share that no machine can give: it would be waited for for ever."""
        for kind, wanted in (("CPU", self.cpus), ("GPU", self.gpus)):
            most = max((held.get(kind, 0) for held in machines), default=0)
            if wanted > most:
                raise ValueError(
                    f"`--{kind.lower()}s-per-{self.unit}` asks for {wanted:g}, but no machine of Ray has more than "
                    f"{most:g} {kind}s."
                )
        if not any(map(self.times_in, machines)):
            raise ValueError(f"no machine of Ray has {self.cpus:g} CPUs and {self.gpus:g} GPUs for a {self.unit}.")

    def surroundings(self) -> "WorkerEnvironment":
        """Of the processes that have the share."""
        places = {name: os.path.abspath(os.environ[name]) for name in PLACES if os.environ.get(name)}
        return WorkerEnvironment(places, self.threads)


@dataclass(frozen=True)
class WorkerEnvironment:
    """What a process elsewhere needs, to find what this one finds: the folders by their variables, and threads."""

    places: Mapping[str, str]
    threads: int

    def enter(self) -> None:
        """Make them those of this process."""
        import torch

        os.environ.update(self.places)
        torch.set_num_threads(self.threads)
