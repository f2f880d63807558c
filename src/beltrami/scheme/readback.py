"""The lookout: how the host learns what the device found, without stopping it."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.func import debug_unwrap

T = TypeVar("T")
LEAD = 1  # reports that may be under way at a time: while the host waits for one, the device still has work


class Report(NamedTuple, Generic[T]):
    """What came in: of every run its numbers, and what they are about."""

    runs: list[list[float]]
    about: T


class Readback(Generic[T]):
    """Reports of a few numbers each, seen in the order they were sent.

    On a GPU they travel to pinned memory with an event behind them, and are seen once they are there. Only when more
    than ``LEAD`` are under way does the host wait, for the oldest of them: the device is at work on what was sent after
    it by then, so that its queue does not run dry, and the host is never further ahead. On the CPU a report is there at
    once.
    """

    def __init__(self) -> None:
        self.under_way: deque[_Sent[T]] = deque()

    def send(self, numbers: Sequence[Tensor], about: T) -> None:
        """Report doubles of shape (), under ``torch.func.vmap`` one of each to a run."""
        runs = torch.broadcast_tensors(*(debug_unwrap(x) for x in numbers))
        found, event = torch.stack(runs, dim=-1).view(-1, len(numbers)), None
        if found.is_cuda:
            found, event = _copied(found)
        self.under_way.append(_Sent(found, event, about))

    def seen(self) -> Iterator[Report[T]]:
        """What has come in since last time."""
        return self._seen(LEAD)

    def rest(self) -> Iterator[Report[T]]:
        """What is still under way; waits for it."""
        return self._seen(0)

    def _seen(self, lead: int) -> Iterator[Report[T]]:
        while self.under_way and (len(self.under_way) > lead or self.under_way[0].here):
            found, event, about = self.under_way.popleft()
            if event is not None:
                event.synchronize()
            yield Report(found.tolist(), about)


class _Sent(NamedTuple, Generic[T]):
    found: Tensor
    event: torch.cuda.Event | None
    about: T

    @property
    def here(self) -> bool:
        return self.event is None or self.event.query()


def _copied(found: Tensor) -> tuple[Tensor, torch.cuda.Event]:
    """The same in pinned memory, and the event after which it is there."""
    pinned = torch.empty(found.shape, dtype=found.dtype, pin_memory=True).copy_(found, non_blocking=True)
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(found.device))
    return pinned, event
