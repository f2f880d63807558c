"""Seeds: one number makes a run repeatable."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Run a block from this seed, on the CPU and every GPU; the caller's own random state is as it was afterwards."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield
