"""Encoding: positions of the nodes, from the graph alone."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor

from beltrami.graph import Edges

Progress: TypeAlias = Callable[[str, int, int | None], None]
"""Told what is being done, how much of it is done, and how much there is if that is known."""

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
"""What JSON can say."""


class Encoding(ABC):
    """Positional coordinates of every node.

    Constructors store what the positions depend on under the names of their arguments, as plain values, dataclasses of
    them or encodings; ``progress`` is the one argument on which nothing depends. ``version`` is raised when a method
    comes to give other positions for the same parameters.

    Shapes:
        ``edges`` over n nodes -> (n, d'), dense or sparse.
    """

    version: ClassVar[int] = 1

    @abstractmethod
    def __call__(self, edges: Edges, generator: torch.Generator | None = None) -> Tensor:
        """Encode; ``generator`` is the one source of randomness, for encodings that have any."""

    def describe(self) -> dict[str, Plain]:
        """The method, its version and its parameters in plain values: encodings described alike encode alike."""
        public = {name: value for name, value in vars(self).items() if not name.startswith("_") and name != "progress"}
        return {
            "method": _name(self),
            "version": self.version,
            "parameters": {name: _plain(value, name=name) for name, value in sorted(public.items())},
        }


def announce(progress: Progress | None, what: str, total: int) -> Callable[[int], None]:
    """Where to say how much of ``total`` is done; nobody need be listening."""

    def done(count: int) -> None:
        if progress is not None:
            progress(what, count, total)

    return done


def _plain(value: object, *, name: str) -> Plain:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(part, name=name) for part in value]
    if isinstance(value, Encoding):
        return value.describe()
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: _plain(getattr(value, field.name), name=name) for field in fields(value)}
        return {"class": _name(value), "fields": parts}
    raise ValueError(
        f"an encoding is described by numbers, strings, dataclasses and other encodings; "
        f"`{name}` is a {type(value).__name__}."
    )


def _name(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"
