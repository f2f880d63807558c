"""Compilation by numba, kept on disk where there is a place for it."""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F, *, fastmath: bool | set[str] = False) -> F:
    """The function as machine code, made when it is first called, which runs without Python's lock.

    The code is kept for the next process; where no folder can be written to it is made anew in each.
    """
    try:
        made: F = numba.njit(nogil=True, cache=True, fastmath=fastmath)(function)
    except RuntimeError:  # numba found no place for its cache
        made = numba.njit(nogil=True, fastmath=fastmath)(function)
    return made
