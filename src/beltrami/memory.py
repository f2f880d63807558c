"""Memory: how much is free, how much this process holds, and numbers of bytes in words."""

import os
import re
from pathlib import Path

PROC, CGROUP = Path("/proc"), Path("/sys/fs/cgroup")
UNKNOWN = 8 * 2**30  # bytes taken as free where the system does not say
PREFIXES = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def free_memory(device: str = "cpu") -> int:
    """Return the bytes of memory that a program may still allocate.

    On the CPU what the system can give without swapping (``MemAvailable``), or what the limit of the control group
    leaves if that is less; on a GPU its free memory and what torch holds there without using it.
    """
    if not device.startswith("cpu"):
        import torch

        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + unused
    return min((_available(), *_left_in_groups()))


def resident_memory() -> int | None:
    """Return the bytes of memory that this process holds; None where the system does not say."""
    pages = _words(PROC / "self" / "statm")
    return int(pages[1]) * os.sysconf("SC_PAGE_SIZE") if len(pages) > 1 else None


def in_bytes(count: float) -> str:
    """Return a number of bytes in words, such as ``5.3 GiB``."""
    if count == float("inf"):
        return "over 8 EiB"
    power = 0
    while count >= 1024 and power < len(PREFIXES) - 1:
        count, power = count / 1024, power + 1
    digits = f"{count:.3g}" if count < 1000 else f"{count:.0f}" if count < 1e4 else f"{count:.0e}"
    return f"{digits} {PREFIXES[power]}"


def parse_bytes(text: str, *, option: str = "--memory") -> int:
    """Return the bytes of a size such as ``8GiB``, ``500MB`` or ``1.5 GiB``, which an option was given."""
    found = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*([KMGTPE]?)(i?)B?", text.strip(), re.IGNORECASE)
    if found is None or not float(found[1]) > 0 or (found[3] and not found[2]):
        raise ValueError(f"`{option}` takes a size such as 8GiB or 500MB; got {text!r}.")
    power = "KMGTPE".index(found[2].upper()) + 1 if found[2] else 0
    return int(float(found[1]) * (1024 if found[3] else 1000) ** power)


def _available() -> int:
    """Return the available memory of the machine, or all of it where the system does not say more."""
    words = _words(PROC / "meminfo")
    if "MemAvailable:" in words:
        return 1024 * int(words[words.index("MemAvailable:") + 1])
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return UNKNOWN


def _left_in_groups() -> list[int]:
    """Return what the limits of this process's control groups leave, in versions 1 and 2 of their files."""
    left = []
    for line in _words(PROC / "self" / "cgroup"):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "memory":
            names, folder = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"), CGROUP / "memory"
        elif controllers == "":
            names, folder = ("memory.max", "memory.current", "inactive_file"), CGROUP
        else:
            continue
        for group in {folder, folder / path.lstrip("/")}:  # inside a container its own group is the root
            limit, used, statistics = (_words(group / name) for name in (*names[:2], "memory.stat"))
            if limit and used and limit[0].isdigit():
                unused = int(statistics[statistics.index(names[2]) + 1]) if names[2] in statistics else 0
                left.append(max(0, int(limit[0]) - int(used[0]) + unused))
    return left


def _words(path: Path) -> list[str]:
    """Return the words of a file; none if it cannot be read."""
    try:
        return path.read_text().split()
    except (OSError, UnicodeDecodeError):
        return []
