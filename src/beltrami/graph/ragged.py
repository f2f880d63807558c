"""Ragged rows: entries of rows that differ in length, listed and ranked without a loop over the rows."""

from collections.abc import Iterator

import torch
from torch import Tensor


def expanded(begin: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
    """Every place in the ranges [begin, end), and the range that it is of; (r,), (r,) -> (e,), (e,) range first."""
    count = end - begin
    which = torch.repeat_interleave(torch.arange(len(begin), device=begin.device), count)
    shift = begin - (count.cumsum(0) - count)
    return which, torch.arange(len(which), device=begin.device) + shift[which]


def ranged(begin: Tensor, end: Tensor, *, most: int) -> Iterator[tuple[Tensor, Tensor]]:
    """:func:`expanded` in pieces of whole ranges, of about ``most`` places each."""
    piece = (end - begin).cumsum(0) // most
    first = 0
    for size in torch.bincount(piece).tolist():
        if size:
            which, place = expanded(begin[first : first + size], end[first : first + size])
            yield which + first, place
        first += size


def ranked(row: Tensor, value: Tensor, *, top: int) -> Tensor:
    """Which entries are the ``top`` largest of their row, row by row and from the largest down; ties as they come.

    Shapes:
        ``row``, ``value`` (e,) -> places in them, (at most e,).
    """
    order = value.argsort(descending=True, stable=True)
    order = order[row[order].argsort(stable=True)]
    count = torch.bincount(row)
    rank = torch.arange(len(row), device=row.device) - (count.cumsum(0) - count)[row[order]]
    return order[rank < top]
