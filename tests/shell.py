"""The command line called as a shell would, and as the processes that it starts compute."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Outcome:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


Beltrami = Callable[..., Outcome]


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread, as the processes that are started do."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
