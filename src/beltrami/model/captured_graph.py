"""Work as a CUDA graph: captured once and replayed without launches from the host, which dominate on small graphs."""

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Generic, TypeVar

import torch
from torch import Tensor

from beltrami.scheme.base import warmup

T = TypeVar("T")
WARM_UP = 2  # calls before the capture, in which libraries and optimisers allocate their state


class CapturedGraph(Generic[T]):
    """A function without arguments as a CUDA graph: each call replays its work on the tensors of the capture.

    Every call returns the same object, with new values in its tensors. Random numbers continue from call to call as
    they would without the graph; running statistics and the random state are as if the capture had not happened.
    ``work`` may not synchronise, and shapes may not change between calls. ``written``: tensors besides its result that
    it writes to, such as a model's buffers. ``warm_up`` is called before the capture, by default ``work``.
    """

    def __init__(
        self,
        work: Callable[[], T],
        written: Iterable[Tensor],
        device: torch.device,
        *,
        warm_up: Callable[[], object] | None = None,
    ) -> None:
        self.work = work  # keeps alive the tensors that the graph reads
        random = torch.cuda.get_rng_state(device)
        collecting = gc.isenabled()
        try:
            with torch.cuda.device(device), values_kept(written):
                self._warm_up(warm_up or work, device)
                self.graph = torch.cuda.CUDAGraph()
                gc.collect()
                gc.disable()  # the collector could free an old CUDA graph, which would end the capture
                with torch.cuda.graph(self.graph):
                    self.result = work()
        finally:
            if collecting:
                gc.enable()
            torch.cuda.set_rng_state(random, device)

    @staticmethod
    def _warm_up(work: Callable[[], object], device: torch.device) -> None:
        side = torch.cuda.Stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side), warmup():
            for _ in range(WARM_UP):
                work()
        torch.cuda.current_stream(device).wait_stream(side)

    def __call__(self) -> T:
        self.graph.replay()
        return self.result


@contextmanager
def values_kept(tensors: Iterable[Tensor]) -> Iterator[None]:
    """Give tensors their values back at the end. Autograd does not take it for a change: a backward pass that saved a
    tensor before finds the same values."""
    before = [(tensor, tensor.detach().clone()) for tensor in tensors]
    try:
        yield
    finally:
        for tensor, value in before:
            tensor.data.copy_(value)


def replayed(work: Callable[[], T], *, device: torch.device, capture: bool) -> Callable[[], T]:
    """Return the work, with ``capture`` as a CUDA graph made at its first call; it may write to its result alone."""
    graph = cache(lambda: CapturedGraph(work, (), device))
    return (lambda: graph()()) if capture else work
