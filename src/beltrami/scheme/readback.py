"""Values copied from the device to the host without stopping the device."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.func import debug_unwrap

T = TypeVar("T")
MAX_PENDING = 1  # reports in flight: while the host waits for the oldest, the device works on what was queued after it


class _Sent(NamedTuple, Generic[T]):
    values: Tensor
    copied: torch.cuda.Event | None
    about: T

    @property
    def ready(self) -> bool:
        return self.copied is None or self.copied.query()


class Readback(Generic[T]):
    """A queue of reports of a few numbers each, from the device to the host, in order.

    On a GPU a report is copied to pinned memory, followed by an event. The host waits, for the oldest report, only if
    more than ``MAX_PENDING`` are in flight. On the CPU a report arrives at once.
    """

    def __init__(self) -> None:
        self.queue: deque[_Sent[T]] = deque()

    def send(self, numbers: Sequence[Tensor], about: T) -> None:
        """Report doubles of shape (), under ``vmap`` one of each for every run, and what they are about."""
        runs = torch.broadcast_tensors(*(debug_unwrap(x) for x in numbers))
        values, copied = torch.stack(runs, dim=-1).view(-1, len(numbers)), None
        if values.is_cuda:
            stream = torch.cuda.current_stream(values.device)
            values = torch.empty(values.shape, dtype=values.dtype, pin_memory=True).copy_(values, non_blocking=True)
            copied = torch.cuda.Event()
            copied.record(stream)
        self.queue.append(_Sent(values, copied, about))

    def arrived(self, max_pending: int = MAX_PENDING) -> Iterator[tuple[list[list[float]], T]]:
        """Yield the reports that have arrived, as (numbers of every run, about); with 0, wait for all of them."""
        while self.queue and (len(self.queue) > max_pending or self.queue[0].ready):
            values, copied, about = self.queue.popleft()
            if copied is not None:
                copied.synchronize()
            yield values.tolist(), about
