"""Clock: how long functions take, measured in turns so that what disturbs one disturbs all."""

import statistics
import time
from collections.abc import Callable, Mapping

import torch

Work = Callable[[], object]


class Timer:
    """Times works on a device, wall-clock: what a user waits for, the host's part included.

    Args:
        device: where they compute; a GPU is waited for before and after each stretch.
        seconds: the least length of a stretch; short works are repeated to fill it.
        rounds: how many stretches of each, taken in turns.
    """

    def __init__(self, device: str, *, seconds: float = 0.1, rounds: int = 7) -> None:
        self.device, self.seconds, self.rounds = device, seconds, rounds

    def compare(self, works: Mapping[str, Work]) -> dict[str, float]:
        """Seconds of one call of each, the median over rounds."""
        repeats = {name: self._repeats(work) for name, work in works.items()}
        taken: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(self.rounds):
            for name, work in works.items():
                taken[name].append(self._stretch(work, repeats[name]) / repeats[name])
        return {name: statistics.median(times) for name, times in taken.items()}

    def _repeats(self, work: Work) -> int:
        work()  # the first call may compile, allocate or record
        once = max(self._stretch(work, 2) / 2, 1e-7)
        return max(1, min(1000, int(self.seconds / once)))

    def _stretch(self, work: Work, repeats: int) -> float:
        self.wait()
        start = time.perf_counter()
        for _ in range(repeats):
            work()
        self.wait()
        return time.perf_counter() - start

    def wait(self) -> None:
        if self.device.startswith("cuda"):
            torch.cuda.synchronize(self.device)


def peak_memory(work: Work, device: str) -> float:
    """MiB of GPU memory that one call needs at most, tensors that were there before included."""
    work()
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    work()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) / 2**20


def copy_bandwidth(device: str, *, megabytes: int = 1024) -> float:
    """Bytes a second that the device copies, read and written both counted."""
    source = torch.empty(megabytes * 2**18, device=device)
    target = torch.empty_like(source)
    clock = Timer(device, rounds=5)
    seconds = clock.compare({"copy": lambda: target.copy_(source)})["copy"]
    return 2 * source.numel() * source.element_size() / seconds
