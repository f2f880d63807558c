"""Measurements: seconds, memory and bandwidth, and the report of a suite."""

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import torch

from beltrami.result import versions

OTHERS = ("torch_geometric", "torchdiffeq", "triton")  # packages whose versions matter, if they are installed
Work = Callable[[], object]
Measurement = dict[str, Any]
"""Names and numbers: seconds under ``..._s``, ratios to a baseline under ``..._ratio``."""
BACKENDS = {"ours": "auto", "library": "vendor", "reference": "reference"}
"""Backends of sparse products by their names in measurements: the default, the vendor's library, plain torch."""


class Timer:
    """Wall-clock seconds of functions, measured in turns so that a disturbance affects all of them: ``rounds`` times
    each. Short functions are repeated to fill ``seconds``, and a GPU is synchronised before and after."""

    def __init__(self, device: str, *, seconds: float = 0.1, rounds: int = 7) -> None:
        self.device, self.seconds, self.rounds = device, seconds, rounds

    def compare(self, works: Mapping[str, Work]) -> dict[str, float]:
        """Return the seconds of one call of each function, the median over rounds."""
        repeats = {name: self._repeats(work) for name, work in works.items()}
        taken: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(self.rounds):
            for name, work in works.items():
                taken[name].append(self._measure(work, repeats[name]) / repeats[name])
        return {name: statistics.median(times) for name, times in taken.items()}

    def _repeats(self, work: Work) -> int:
        work()  # the first call may compile, allocate or record
        once = max(self._measure(work, 2) / 2, 1e-7)
        return max(1, min(1000, int(self.seconds / once)))

    def _measure(self, work: Work, repeats: int) -> float:
        self._synchronise()
        start = time.perf_counter()
        for _ in range(repeats):
            work()
        self._synchronise()
        return time.perf_counter() - start

    def _synchronise(self) -> None:
        if self.device.startswith("cuda"):
            torch.cuda.synchronize(self.device)


def peak_memory(work: Work, device: str) -> float:
    """Return the peak GPU memory of one call in MiB, including tensors that existed before."""
    work()
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    work()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) / 2**20


def copy_bandwidth(device: str, *, megabytes: int = 1024) -> float:
    """Return the bytes per second that the device copies, reads and writes both counted."""
    source = torch.empty(megabytes * 2**18, device=device)
    target = torch.empty_like(source)
    seconds = Timer(device, rounds=5).compare({"copy": lambda: target.copy_(source)})["copy"]
    return 2 * source.numel() * source.element_size() / seconds


@dataclass(frozen=True)
class BenchReport:
    """The measurements of a suite, and the conditions they were made under."""

    suite: str
    device: str
    command: str
    rows: Sequence[Measurement]
    date: str = field(default_factory=lambda: time.strftime("%Y-%m-%d"))
    threads: int = field(default_factory=torch.get_num_threads)
    versions: dict[str, str] = field(
        default_factory=lambda: versions() | {name: version(name) for name in OTHERS if find_spec(name)}
    )

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2) + "\n"
