"""Chunks cover every row once and in order; ranges and ranks against loops."""

import pytest
import torch

from beltrami.graph import row_chunks
from beltrami.graph.row_chunks import chunk_rows, largest_per_row

COUNTS = torch.tensor([0, 7, 1, 0, 3, 4, 0])
PTR = torch.cat((torch.zeros(1, dtype=torch.long), COUNTS.cumsum(0)))


@pytest.mark.parametrize("length", [1, 3, 128])
def test_chunks_cover_every_row_once_and_in_order(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_chunks, "LONG", length)
    found = chunk_rows(PTR.int(), entries=15)
    covered: dict[int, list[int]] = {row: [] for row in range(7)}
    for row, start, stop in zip(found.row.tolist(), found.start.tolist(), found.stop.tolist(), strict=True):
        assert stop - start <= length
        covered[row] += range(start, stop)
    assert list(covered.values()) == [list(range(int(PTR[r]), int(PTR[r + 1]))) for r in range(7)]
    split = [row for row in range(7) if found.row.tolist().count(row) > 1]
    assert found.split_row.tolist() == split
    assert found.num_slots == sum(found.row.tolist().count(row) for row in split)
    for s, row in enumerate(split):
        slots = found.slot[found.row == row].tolist()
        assert slots == list(range(int(found.split_ptr[s]), int(found.split_ptr[s + 1])))
    assert all(found.slot[found.row == row].tolist() == [-1] for row in range(7) if row not in split)
    assert found.split_bounds[3].tolist() == list(range(found.num_slots))
    for whole, part in zip(found.bounds, found.split_bounds, strict=True):
        assert torch.equal(part, whole[found.slot >= 0])


@pytest.mark.parametrize(("entries", "length"), [(100, 16), (2**16, 32), (2**18, 128)])
def test_chunks_are_shorter_in_small_patterns(entries: int, length: int) -> None:
    assert int(chunk_rows(torch.tensor([0, 1000]), entries=entries).stop[0]) == length


@pytest.mark.parametrize("top", [1, 2, 10])
def test_largest_per_row_are_descending_and_ties_keep_their_order(top: int) -> None:
    row, value = torch.tensor([2, 0, 2, 0, 2, 0]), torch.tensor([1.0, 3.0, 5.0, 3.0, 5.0, 4.0])
    ranked = [*[5, 1, 3][:top], *[2, 4, 0][:top]]
    assert largest_per_row(row, value, top=top).tolist() == ranked
