"""Copies begin one block ahead, in two slots, and no slot is filled before its last use has ended."""

from collections.abc import Sequence

import numpy as np
import torch

from beltrami.scale.prefetch import HostStaging, Source, Staging, new_tensor, one_ahead


class Recorded(Staging[str]):
    """Staging that writes down what it is asked for instead of copying."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def begin(self, slot: int, sources: Sequence[Source]) -> str:
        self.events.append(f"begin {slot}")
        return f"copy in {slot}"

    def wait(self, slot: int) -> None:
        self.events.append(f"wait {slot}")

    def release(self, slot: int) -> None:
        self.events.append(f"release {slot}")


def test_the_next_copy_begins_before_a_block_is_used() -> None:
    staging = Recorded()
    for item, copied in one_ahead([(name, ()) for name in "abc"], staging):
        staging.events.append(f"use {item} {copied}")
    assert staging.events == [
        *("begin 0", "begin 1", "wait 0", "use a copy in 0", "release 0"),
        *("begin 0", "wait 1", "use b copy in 1", "release 1"),
        *("wait 0", "use c copy in 0", "release 0"),
    ]


def test_few_blocks_need_no_second_slot() -> None:
    staging = Recorded()
    assert [item for item, _ in one_ahead([("a", ())], staging)] == ["a"]
    assert staging.events == ["begin 0", "wait 0", "release 0"]
    assert list(one_ahead([], staging)) == []


def test_memory_maps_are_read_into_the_buffers_of_a_slot() -> None:
    staging, values = HostStaging(entries=5), np.arange(10)
    parts = [(k, [values[3 * k : 3 * k + 3], values[:2] / 4]) for k in range(3)]
    read = {k: [each.clone() for each in copied] for k, copied in one_ahead(parts, staging)}
    assert all(torch.equal(read[k][0], torch.arange(3 * k, 3 * k + 3, dtype=torch.int32)) for k in range(3))
    assert read[2][1].tolist() == [0.0, 0.25]
    assert read[2][1].dtype == torch.float64


def test_tensors_outside_the_device_are_files_on_a_cpu() -> None:
    cpu = torch.device("cpu")
    outside = new_tensor((3, 2), torch.float32, cpu, on_device=False).fill_(2.0)
    assert outside.sum() == 12.0
    assert new_tensor((0, 2), torch.float32, cpu, on_device=False).shape == (0, 2)
