"""Copies of blocks to the device, one block ahead of the computation that uses them."""

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor

from beltrami.data.array_file import Array

Source: TypeAlias = Tensor | Array
"""Values of a block: a tensor on the device or on the host, or a part of a memory map."""
T = TypeVar("T")
Copied = TypeVar("Copied")


class Staging(ABC, Generic[Copied]):
    """Two sets of buffers on the device, called slots, that are filled and used in turn."""

    @abstractmethod
    def begin(self, slot: int, sources: Sequence[Source]) -> Copied:
        """Start to copy the sources into the buffers of a slot, once its last use has ended; return the copies."""

    @abstractmethod
    def wait(self, slot: int) -> None:
        """Let the computations that follow begin after the copies of a slot have ended."""

    @abstractmethod
    def release(self, slot: int) -> None:
        """Allow the slot to be filled again after the computations that were started so far."""


def one_ahead(
    items: Iterable[tuple[T, Sequence[Source]]], staging: Staging[Copied]
) -> Iterator[tuple[T, Copied]]:  # fmt: skip
    """Yield each item with the copies of its sources; the copy of the next item begins before an item is yielded."""
    waiting: list[tuple[T, Copied, int]] = []
    for number, (item, sources) in enumerate(items):
        waiting.append((item, staging.begin(number % 2, sources), number % 2))
        if len(waiting) == 2:
            yield from _used(waiting.pop(0), staging)
    for last in waiting:
        yield from _used(last, staging)


def _used(waiting: tuple[T, Copied, int], staging: Staging[Copied]) -> Iterator[tuple[T, Copied]]:
    item, copied, slot = waiting
    staging.wait(slot)
    yield item, copied
    staging.release(slot)


class Buffers:
    """Buffers of two slots by the place and type of a source, made when they are first needed and kept."""

    def __init__(self, device: torch.device | str, *, entries: int, pinned: bool = False) -> None:
        self.device, self.entries, self.pinned = device, entries, pinned
        self._known: dict[tuple[int, int, torch.dtype], Tensor] = {}

    def get(self, slot: int, place: int, dtype: torch.dtype, length: int) -> tuple[Tensor, bool]:
        """Return a buffer of this length, and whether it was made now."""
        key = (slot, place, dtype)
        new = key not in self._known
        if new:
            self._known[key] = torch.empty(self.entries, dtype=dtype, device=self.device, pin_memory=self.pinned)
        return self._known[key][:length], new


class HostStaging(Staging[tuple[Tensor, ...]]):
    """Staging on the CPU: parts of memory maps are read into the buffers, and nothing runs at the same time."""

    def __init__(self, *, entries: int) -> None:
        self._buffers = Buffers("cpu", entries=entries)

    def begin(self, slot: int, sources: Sequence[Source]) -> tuple[Tensor, ...]:
        return tuple(
            source if isinstance(source, Tensor) else read_into(self._buffers, slot, place, source)
            for place, source in enumerate(sources)
        )

    def wait(self, slot: int) -> None:
        pass

    def release(self, slot: int) -> None:
        pass


class CudaStaging(Staging[tuple[Tensor, ...]]):
    """Staging on a GPU: a second stream copies from pinned host memory while kernels run.

    A part of a memory map is first read into a pinned buffer. Sources on the device are used where they are.
    """

    def __init__(self, device: torch.device, *, entries: int) -> None:
        self.device = device
        self.stream = torch.cuda.Stream(device)
        self._buffers = Buffers(device, entries=entries)
        self._pinned = Buffers("cpu", entries=entries, pinned=True)
        self._copied = [torch.cuda.Event(), torch.cuda.Event()]
        self._used = [torch.cuda.Event(), torch.cuda.Event()]

    def begin(self, slot: int, sources: Sequence[Source]) -> tuple[Tensor, ...]:
        if all(isinstance(source, Tensor) and source.is_cuda for source in sources):
            return tuple(source for source in sources if isinstance(source, Tensor))
        self.stream.wait_event(self._used[slot])
        if any(not isinstance(source, Tensor) for source in sources):
            self._copied[slot].synchronize()  # the pinned buffer is still being copied
        copies = tuple(self._copy(slot, place, source) for place, source in enumerate(sources))
        self._copied[slot].record(self.stream)
        return copies

    def _copy(self, slot: int, place: int, source: Source) -> Tensor:
        if isinstance(source, Tensor) and source.is_cuda:
            return source
        host = source if isinstance(source, Tensor) else read_into(self._pinned, slot, place, source)
        copy, new = self._buffers.get(slot, place, host.dtype, len(host))
        if new:
            self.order_after_writes()  # its memory may still be in use as that of a tensor that was freed
        with torch.cuda.stream(self.stream):
            copy.copy_(host, non_blocking=True)
        return copy

    def wait(self, slot: int) -> None:
        torch.cuda.current_stream(self.device).wait_event(self._copied[slot])

    def release(self, slot: int) -> None:
        self._used[slot].record(torch.cuda.current_stream(self.device))

    def order_after_writes(self) -> None:
        """Let later copies begin after the computations that were started so far, which may write to their sources."""
        self.stream.wait_stream(torch.cuda.current_stream(self.device))


def read_into(buffers: Buffers, slot: int, place: int, source: Array) -> Tensor:
    """Read a part of a memory map into a buffer; integers become 32-bit."""
    dtype = torch.int32 if source.dtype.kind in "iu" else torch.from_numpy(np.empty(0, source.dtype)).dtype
    buffer, _ = buffers.get(slot, place, dtype, len(source))
    np.copyto(buffer.numpy(), source, casting="unsafe")
    return buffer


def new_tensor(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, *, on_device: bool) -> Tensor:
    """Return a tensor that is not initialised: on the device; or, for a GPU, in pinned host memory, and for the CPU, in
    a temporary file that is deleted with the tensor, so that the system can write it to disk."""
    if on_device or 0 in shape:
        return torch.empty(shape, dtype=dtype, device=device)
    if device.type == "cuda":
        return torch.empty(shape, dtype=dtype, pin_memory=True)
    with tempfile.TemporaryFile() as file:
        kind = torch.empty(0, dtype=dtype).numpy().dtype
        return torch.from_numpy(np.memmap(file, dtype=kind, mode="w+", shape=shape))
