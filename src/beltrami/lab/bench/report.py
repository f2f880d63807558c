"""Report: the rows of a benchmark, with what they were measured on, as JSON and as a table."""

import json
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from beltrami.result import versions

Measurement = dict[str, Any]
"""One measurement: names and numbers. Seconds under ``..._s``, ratios to a rival under ``..._ratio``."""


@dataclass(frozen=True)
class Report:
    """What a suite measured, where and how."""

    suite: str
    device: str
    command: str
    rows: Sequence[Measurement]
    date: str = field(default_factory=lambda: time.strftime("%Y-%m-%d"))
    threads: int = field(default_factory=torch.get_num_threads)
    versions: dict[str, str] = field(default_factory=lambda: {**versions(), **_rivals()})

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2) + "\n"

    @property
    def columns(self) -> list[str]:
        """The names that rows have, in the order in which they first come."""
        return list(dict.fromkeys(name for row in self.rows for name in row))


def device_name(device: str) -> str:
    """The device in words."""
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return f"cpu ({platform.machine()}, {torch.get_num_threads()} threads)"


def _rivals() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("torch_geometric", "torchdiffeq", "triton"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
