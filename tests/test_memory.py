"""Free memory is what the system and the control group leave; numbers of bytes are printed in words."""

from pathlib import Path

import pytest

from beltrami import memory
from beltrami.memory import free_memory, in_bytes, resident_memory

GIB = 2**30
MEMINFO = f"MemTotal: {32 * 2**20} kB\nMemFree: {2 * 2**20} kB\nMemAvailable: {20 * 2**20} kB\n"


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of a system that has 20 of 32 GiB available, in no control group."""
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "meminfo").write_text(MEMINFO)
    monkeypatch.setattr(memory, "PROC", tmp_path / "proc")
    monkeypatch.setattr(memory, "CGROUP", tmp_path / "cgroup")
    return tmp_path


def in_group(system: Path, line: str, folder: str, files: dict[str, str]) -> None:
    (system / "proc" / "self" / "cgroup").write_text(f"12:pids:/\n{line}\n")
    (system / "cgroup" / folder).mkdir(parents=True)
    for name, content in files.items():
        (system / "cgroup" / folder / name).write_text(content)


def test_available_memory_is_free(system: Path) -> None:
    assert free_memory() == 20 * GIB


def test_without_files_all_memory_counts(system: Path) -> None:
    (system / "proc" / "meminfo").unlink()
    assert free_memory() > GIB
    assert resident_memory() is None


@pytest.mark.parametrize("folder", ["", "job/7"])
def test_the_limit_of_a_control_group_counts_less_what_it_uses(system: Path, folder: str) -> None:
    files = {"memory.max": f"{8 * GIB}\n", "memory.current": f"{5 * GIB}\n", "memory.stat": f"inactive_file {GIB}\n"}
    in_group(system, "0::/job/7", folder, files)
    assert free_memory() == 4 * GIB


def test_the_limit_of_a_control_group_of_the_first_version_counts(system: Path) -> None:
    files = {"memory.limit_in_bytes": f"{8 * GIB}\n", "memory.usage_in_bytes": f"{5 * GIB}\n"}
    in_group(system, "4:memory:/job/7", "memory/job/7", files)
    assert free_memory() == 3 * GIB


@pytest.mark.parametrize("limit", ["max", str(2**63 - 4096)])
def test_a_control_group_without_a_limit_does_not_count(system: Path, limit: str) -> None:
    in_group(system, "0::/", "", {"memory.max": limit, "memory.current": "0"})
    assert free_memory() == 20 * GIB


def test_this_process_holds_memory() -> None:
    held = resident_memory()
    assert held is None or held > 2**20


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (12, "12 bytes"),
        (1000, "1000 bytes"),
        (5.3 * GIB, "5.3 GiB"),
        (5e6 * GIB, "4.77 PiB"),
        (1e30, "9e+11 EiB"),
        (float("inf"), "over 8 EiB"),
    ],
)
def test_bytes_in_words(count: float, words: str) -> None:
    assert in_bytes(count) == words
