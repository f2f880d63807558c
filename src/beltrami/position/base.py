"""The interface of a positional encoding."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor

from beltrami.graph import Edges

Progress: TypeAlias = Callable[[str, int, int | None], None]
"""A function that receives the name of a task, the amount done, and the total if it is known."""

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
"""Values that JSON can represent."""


class Encoding(ABC):
    """Positional coordinates of every node.

    Constructors store all parameters under the names of their arguments, as plain values, dataclasses of them or
    encodings; only ``progress`` does not affect the positions. Increase ``version`` when a change of the method gives
    other positions for the same parameters. ``edges`` over n nodes -> (n, d'), dense or sparse.
    """

    version: ClassVar[int] = 1

    @abstractmethod
    def __call__(self, edges: Edges, generator: torch.Generator | None = None) -> Tensor:
        """Return the positions; ``generator`` is the only source of randomness, for encodings that need one."""

    def describe(self) -> dict[str, Plain]:
        """Return the method, version and parameters in plain values; equal descriptions mean equal positions."""
        public = {name: value for name, value in vars(self).items() if not name.startswith("_") and name != "progress"}
        parameters = {name: _plain(value, name=name) for name, value in sorted(public.items())}
        return {"method": _class_name(self), "version": self.version, "parameters": parameters}


def reporter(progress: Progress | None, task: str, total: int) -> Callable[[int], None]:
    """Return a function that reports the amount done of ``total`` to ``progress``, if there is one."""

    def report(done: int) -> None:
        if progress is not None:
            progress(task, done, total)

    return report


def generator_on(device: torch.device, generator: torch.Generator | None, *, needed_by: str) -> torch.Generator:
    """Return the generator if it is on the device, else a new one on the device, seeded from its next number."""
    if generator is None:
        raise ValueError(f"{needed_by} is random: pass a `generator`, such as torch.Generator().manual_seed(0).")
    if generator.device == device:
        return generator
    seed = torch.randint(2**62, (1,), generator=generator, device=generator.device)
    return torch.Generator(device).manual_seed(int(seed))


def check_counts(owner: object, *names: str) -> None:
    """Refuse an object with one of these attributes below one."""
    for name in names:
        if not getattr(owner, name) >= 1:
            raise ValueError(f"{type(owner).__name__} needs `{name}` at least 1; got {getattr(owner, name)}.")


def check_positive(owner: object, *names: str) -> None:
    """Refuse an object with one of these attributes not positive and finite."""
    for name in names:
        if not 0 < getattr(owner, name) < float("inf"):
            raise ValueError(f"{type(owner).__name__} needs a positive, finite `{name}`; got {getattr(owner, name)}.")


def _plain(value: object, *, name: str) -> Plain:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(part, name=name) for part in value]
    if isinstance(value, Encoding):
        return value.describe()
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: _plain(getattr(value, field.name), name=name) for field in fields(value)}
        return {"class": _class_name(value), "fields": parts}
    kinds = "numbers, strings, dataclasses or encodings"
    raise ValueError(f"the parameters of an encoding must be {kinds}; `{name}` is a {type(value).__name__}.")


def _class_name(value: object) -> str:
    """Return the name of the class after its top-level package, so that it does not depend on the module."""
    return f"{type(value).__module__.partition('.')[0]}.{type(value).__qualname__}"
