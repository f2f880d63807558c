"""Raw files of small graphs in the formats of the Open Graph Benchmark."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np


def write_table(folder: Path, name: str, text: str) -> None:
    """Write a compressed table."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(gzip.compress(text.encode()))


def write_archives(folder: Path, *, deflated: bool = False, **changes: Any) -> Path:
    """Write archives of five nodes; two have no class. ``changes`` are other arrays, None omits one."""
    arrays = {
        "edge_index": np.array([[0, 1, 2, 3], [1, 0, 3, 1]]),
        "node_feat": np.arange(10, dtype=np.float32).reshape(5, 2),
        "num_nodes_list": np.array([5]),
        "num_edges_list": np.array([4]),
        "edge_feat": np.array(None, dtype=object),
        "node_label": np.array([[0], [2], [1], [np.nan], [np.nan]], dtype=np.float32),
    } | changes
    given = {name: array for name, array in arrays.items() if array is not None and name != "node_label"}
    save = np.savez_compressed if deflated else np.savez
    (folder / "raw").mkdir(parents=True, exist_ok=True)
    save(folder / "raw/data.npz", allow_pickle=True, **given)
    save(folder / "raw/node-label.npz", allow_pickle=True, node_label=arrays["node_label"])
    for name, node in (("train", 2), ("valid", 0), ("test", 1)):
        write_table(folder, f"split/time/{name}.csv.gz", f"{node}\n")
    return folder
