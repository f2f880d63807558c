"""Rows of results: files of one JSON object on each line."""

import json
from pathlib import Path
from typing import Any

import torch


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file; none if there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def device_name(device: str) -> str:
    """Return the name of the GPU, or the device as it was given."""
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device
