"""CUDA graphs: work recorded once and replayed without the host, which on small graphs is where the time goes."""

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import torch
from torch import Tensor

from beltrami.model import Classifier
from beltrami.scheme.base import warmup

T = TypeVar("T")
WARM_UP = 2  # runs before recording, in which libraries set themselves up and optimisers their state


class CapturedGraph(Generic[T]):
    """A function of no arguments as a CUDA graph: each call replays its work on the tensors it was recorded with.

    What it returns is the same object every time, with new values in its tensors. Random numbers go on from call to
    call as they would without the graph; running statistics and random state are as if recording had not happened.

    Args:
        work: the function. It may not wait for the device, and shapes may not change between calls.
        written: tensors besides its result that the work writes to, such as a model's buffers.
    """

    def __init__(self, work: Callable[[], T], written: Iterable[Tensor], device: torch.device) -> None:
        self.work = work  # the graph reads tensors that the work may be the only one to hold
        written = list(written)
        random = torch.cuda.get_rng_state(device)
        values = [tensor.detach().clone() for tensor in written]
        side = torch.cuda.Stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side), warmup():
            for _ in range(WARM_UP):
                work()
        torch.cuda.current_stream(device).wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with _no_collection(), torch.cuda.graph(self.graph):
            self.result = work()
        torch.cuda.set_rng_state(random, device)
        with torch.no_grad():
            for tensor, value in zip(written, values, strict=True):
                tensor.copy_(value)

    def __call__(self) -> T:
        self.graph.replay()
        return self.result


@contextmanager
def _no_collection() -> Iterator[None]:
    """Nothing is freed by the way: an old graph that is cleared away while another is recorded ends the recording."""
    was = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def replayed(work: Callable[[], T], *, device: torch.device, record: bool) -> Callable[[], T]:
    """The work, recorded when it is first called if it is to be; it writes to nothing but its result."""
    graph: list[CapturedGraph[T]] = []

    def run() -> T:
        if not record:
            return work()
        if not graph:
            graph.append(CapturedGraph(work, (), device))
        return graph[0]()

    return run


def to_record(model: Classifier, wanted: bool | None) -> bool:
    """Whether steps of the model are recorded: as ``wanted``, refused where it cannot be; for None, where it can."""
    if wanted and not capturable(model):
        raise ValueError(
            "`record` needs a model on a GPU with constant steps or Exponential, a mesh that stands still and no "
            "running costs: leave it None, and what can be recorded is."
        )
    return capturable(model) if wanted is None else wanted


def capturable(model: Classifier) -> bool:
    """Whether a step of the model never waits for the device, so that it can be recorded."""
    on_gpu = next(model.parameters()).device.type == "cuda"
    return on_gpu and not model.synchronises
