"""Names that stand for things."""

from collections.abc import Mapping
from typing import TypeVar

from beltrami.errors import UnknownName

T = TypeVar("T")


def named(kind: str, name: str, known: Mapping[str, T]) -> T:
    """What the name of a setting stands for; an unknown one is refused with the nearest that there is."""
    if name not in known:
        raise UnknownName(kind, name, known)
    return known[name]
