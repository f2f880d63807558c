"""Plans keep to their limit, cover all rows, and refuse a limit in which not even one column fits."""

import numpy as np
import pytest

from beltrami.errors import DataError
from beltrami.graph.ops.row_block import LONG
from beltrami.memory import parse_bytes
from beltrami.scale.edge_blocks import evenly_spread, row_ranges
from beltrami.scale.memory_plan import MemoryNeed, MemoryPlan, plan_memory

NEED = MemoryNeed(node=20, column=12, edge=4, staged=4, work=16, row=10, row_column=8, other=30, fixed=100)
HUB = 5 * LONG


def bounds(seed: int = 0) -> np.ndarray:
    """Rows of 0 to 60 entries, and one of many."""
    counts = np.random.default_rng(seed).integers(0, 60, size=3000)
    counts[7] = HUB
    return np.concatenate(([0], counts.cumsum()))


def least_bytes(plan: MemoryPlan, ptr: np.ndarray, need: MemoryNeed) -> int:
    """Add up what the plan keeps on the device, from its blocks."""
    nodes, edges = len(ptr) - 1, [each.num_edges for each in plan.ranges]
    kept = sum(m for m, there in zip(edges, plan.on_device, strict=True) if there)
    rows = max(each.stop - each.start for each in plan.ranges)
    staged = 0 if all(plan.on_device) else 2 * need.staged * max(edges)
    work = need.work * max(edges) + rows * (need.row + need.row_column * plan.columns)
    states = nodes * (need.node + max(need.column * plan.columns, need.other))
    return need.fixed + states + need.edge * kept + staged + work


@pytest.mark.parametrize("memory", [400_000, 600_000, 800_000, 1_500_000, 10_000_000])
def test_a_plan_keeps_to_its_limit_and_covers_the_rows(memory: int) -> None:
    ptr = bounds()
    plan = plan_memory(ptr, NEED, columns=17, memory=memory, device="cpu")
    assert least_bytes(plan, ptr, NEED) <= plan.bytes <= memory
    assert [row for each in plan.ranges for row in range(each.start, each.stop)] == list(range(3000))
    assert all((each.first, each.last) == (ptr[each.start], ptr[each.stop]) for each in plan.ranges)
    assert 1 <= plan.columns <= 17
    assert "columns at once" in plan.summary


def test_more_memory_copies_fewer_edges() -> None:
    copied = [
        plan_memory(bounds(), NEED, columns=17, memory=m, device="cpu").copied for m in range(380_000, 10**6, 20_000)
    ]
    assert copied == sorted(copied, reverse=True)
    assert copied[0] > 0
    assert copied[-1] == 0


def test_a_limit_below_one_column_is_refused() -> None:
    with pytest.raises(DataError, match=r"one column of 3000 nodes needs about .* and 97\.7 KiB are allowed"):
        plan_memory(bounds(), NEED, columns=4, memory=100_000, device="cpu")


def test_the_refusal_names_a_memory_that_suffices() -> None:
    with pytest.raises(DataError) as refusal:
        plan_memory(bounds(), NEED, columns=4, memory=100_000, device="cpu")
    enough = parse_bytes(str(refusal.value).split("about ")[1].split(" on")[0])
    assert plan_memory(bounds(), NEED, columns=4, memory=enough, device="cpu").columns >= 1


def test_without_a_limit_the_free_memory_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beltrami.scale.memory_plan.free_memory", lambda device: 10**6)
    assert plan_memory(bounds(), NEED, columns=17, memory=None, device="cpu").limit == 800_000


def test_ranges_of_rows_have_a_size() -> None:
    ptr = bounds()
    ranges = row_ranges(ptr, most_edges=100, most_rows=3)
    assert all(each.stop - each.start <= 3 for each in ranges)
    assert all(each.num_edges <= 100 or each.stop == each.start + 1 for each in ranges)
    assert max(each.num_edges for each in ranges) == HUB


def test_chosen_blocks_are_spread_evenly() -> None:
    assert evenly_spread(2, 5) == [False, False, True, False, True]
    assert evenly_spread(0, 3) == [False] * 3
    assert evenly_spread(3, 3) == [True] * 3


@pytest.mark.parametrize(
    ("text", "size"), [("8GiB", 8 * 2**30), ("64 MiB", 2**26), ("1.5kb", 1500), ("500MB", 5 * 10**8), ("12", 12)]
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "8 apples", "-1GiB", "0GiB", "5iB"])
def test_other_words_are_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="`--memory` takes a size such as 8GiB or 500MB; got"):
        parse_bytes(text)
