"""Small graphs in the formats of published datasets, and the functions that read them."""

import gzip
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from fuzz_given_files import NODES, Reader

from beltrami.data.heterophilous import files_digest, pei_files, read_pei, read_platonov
from beltrami.data.ogb import read_ogb, read_ogb_archives


def _write_ogb(folder: Path) -> None:
    tables = {
        "raw/edge": [f"{k},{(k + 1) % NODES}" for k in range(NODES)],
        "raw/node-feat": [f"0.5,{k}" for k in range(NODES)],
        "raw/node-label": [str(k % 3) for k in range(NODES)],
        "raw/num-node-list": [str(NODES)],
        "raw/num-edge-list": [str(NODES)],
        **{
            f"split/time/{name}": [str(k) for k in range(c, NODES, 3)]
            for c, name in enumerate(("train", "valid", "test"))
        },
    }
    for name, lines in tables.items():
        path = folder / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))


def _write_ogb_archives(folder: Path) -> None:
    _write_ogb(folder)
    ring = np.stack((np.arange(NODES), (np.arange(NODES) + 1) % NODES))
    np.savez(folder / "raw/data.npz", edge_index=ring, node_feat=np.ones((NODES, 2)), num_nodes_list=np.array([NODES]))
    np.savez(folder / "raw/node-label.npz", node_label=np.arange(NODES, dtype=np.float32) % 3)
    for table in (folder / "raw").glob("*.csv.gz"):
        table.unlink()


def _write_platonov(folder: Path) -> None:
    sets = np.arange(NODES) % 3 == np.arange(3)[:, None, None]
    masks = {f"{name}_masks": np.repeat(sets[k], 10, 0) for k, name in enumerate(("train", "val", "test"))}
    edges = np.stack((np.arange(NODES), np.roll(np.arange(NODES), 1)), 1)
    x, y = np.ones((NODES, 3), np.float32), np.arange(NODES) % 2
    np.savez_compressed(folder / "a.npz", node_features=x, node_labels=y, edges=edges, allow_pickle=False, **masks)


def _write_pei(folder: Path) -> None:
    lines = {"graph_edges": [f"{k}\t{k // 2}" for k in range(NODES)]}
    lines["node_feature_label"] = [f"{k}\t0,{k % 5}\t{k % 3}" for k in range(NODES)]
    for name, rows in lines.items():
        (folder / f"out1_{name}.txt").write_text("\n".join(["head", *rows, ""]))
    for file in pei_files("a")[2:]:
        train, val, test = (np.arange(NODES) % 3 == k for k in range(3))
        np.savez(folder / file, train_mask=train, val_mask=val, test_mask=test)


def _read_pei(folder: Path, _: Path) -> object:
    digest = files_digest([folder / file for file in pei_files("a")])
    return read_pei(folder, name="a", files="a", digest=digest, words=5)


PUBLISHED_FILES: Mapping[str, Reader] = {
    "ogb": Reader(_write_ogb, lambda folder, _: read_ogb(folder, name="a", sizes=(NODES, NODES, 2, 3)), {"": "gzip"}),
    "ogb archives": Reader(
        _write_ogb_archives,
        lambda folder, _: read_ogb_archives(folder, name="a", sizes=(NODES, NODES, 2, 3)),
        {".npz": "zip", "": "gzip"},
    ),
    "platonov": Reader(
        _write_platonov,
        lambda folder, _: read_platonov(folder / "a.npz", name="a", digest=files_digest([folder / "a.npz"])),
        {"": "zip"},
    ),
    "pei": Reader(_write_pei, _read_pei, {".npz": "zip", "": "text"}),
}
"""Readers of published files, by name."""
