"""Small graphs, datasets and images in every format that is read, and the functions that read them."""

import hashlib
import pickle
import shutil
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix

from beltrami.data.archives import npz_digest, read_npz
from beltrami.data.file import data_folder
from beltrami.data.graph_reader import read_graph
from beltrami.data.labelled_graph import LabelledGraph
from beltrami.data.planetoid import read_planetoid
from beltrami.data.preprocess import Preprocessing
from beltrami.data.target import read_targets
from beltrami.image.image_file import Picture, encode_image, read_image

NODES = 40


@dataclass(frozen=True)
class Reader:
    """A reader: ``write`` makes valid files in a folder, ``read`` reads them and writes its results into another.

    ``kinds`` are the mutations that suit the files, by the end of their names.
    """

    write: Callable[[Path], None]
    read: Callable[[Path, Path], object]
    kinds: Mapping[str, str]


def _rows() -> tuple[list[list[str]], list[list[str]]]:
    random = np.random.RandomState(0)
    nodes = [["id", "size", "colour", "share", "class"]]
    nodes += [
        [
            f"n{k}",
            str(k % 7),
            ("red", "blue", "")[k % 3],
            f"{random.randn():.4f}",
            ("cat", "dog")[k % 2] if k < 30 else "",
        ]
        for k in range(NODES)
    ]
    edges = [["source", "target", "weight"]]
    edges += [[f"n{k}", f"n{(k + step) % NODES}", f"{random.rand():.3f}"] for k in range(NODES) for step in (2, 4)]
    return nodes, edges


def write_text(folder: Path, *, suffix: str, separator: str) -> None:
    for name, rows in zip(("nodes", "edges"), _rows(), strict=True):
        (folder / f"{name}{suffix}").write_text("".join(separator.join(row) + "\n" for row in rows))


def _write_edge_list(folder: Path) -> None:
    _, edges = _rows()
    (folder / "graph.edges").write_text("# a comment\n" + "".join(" ".join(row) + "\n" for row in edges[1:]))


def _write_parquet(folder: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table(0), folder / "nodes.parquet", compression="snappy")
    pq.write_table(table(1), folder / "edges.parquet", compression="none")


def table(k: int) -> Any:
    """Return the nodes (0) or the edges (1) as a table of pyarrow."""
    import pyarrow as pa

    rows = _rows()[k]
    columns = {title: [row[c] for row in rows[1:]] for c, title in enumerate(rows[0])}
    numeric = {"size": int, "share": float, "weight": float}
    return pa.table({title: [*map(numeric.get(title, str), column)] for title, column in columns.items()})


def _arrays() -> dict[str, Any]:
    random = np.random.RandomState(0)
    return {
        "x": random.randn(NODES, 4).astype(np.float32),
        "edge_index": np.stack((np.arange(NODES), (np.arange(NODES) + 1) % NODES)),
        "y": np.arange(NODES) % 3,
        "train_mask": np.arange(NODES) < 20,
    }


def _published() -> dict[str, Any]:
    random = np.random.RandomState(0)
    parts = {"adj": csr_matrix(random.rand(NODES, NODES) < 0.1), "attr": csr_matrix(random.rand(NODES, 6) < 0.4)}
    found: dict[str, Any] = {"labels": np.arange(NODES) % 3}
    for name, matrix in parts.items():
        found |= {f"{name}_{part}": getattr(matrix, part) for part in ("indices", "indptr")}
        found |= {f"{name}_data": matrix.data.astype(np.float32), f"{name}_shape": np.array(matrix.shape)}
    return found


def _write_graphml(folder: Path) -> None:
    import networkx as nx

    graph = nx.Graph()
    nodes, edges = _rows()
    for name, size, colour, share, kind in nodes[1:]:
        graph.add_node(name, size=int(size), colour=colour, share=float(share), **({"class": kind} if kind else {}))
    graph.add_weighted_edges_from((j, i, float(weight)) for j, i, weight in edges[1:])
    nx.write_graphml(graph, folder / "graph.graphml")


def _write_planetoid(folder: Path) -> None:
    """Copy the files of Cora if they are there, else write small ones of the same form."""
    real = (data_folder() or Path("none")) / "Cora" / "raw"
    if (real / "ind.cora.graph").exists():
        for path in real.glob("ind.cora.*"):
            shutil.copyfile(path, folder / path.name)
        return
    classes, random = np.eye(3, dtype=np.int32), np.random.RandomState(0)
    words = [csr_matrix((random.rand(rows, 5) < 0.4).astype(np.float32)) for rows in (30, 10)]
    parts = {
        "y": classes[np.arange(6) % 3],
        "ally": classes[np.arange(30) % 3],
        "ty": classes[np.arange(10) % 3],
        "allx": words[0],
        "tx": words[1],
        "graph": defaultdict(list, {k: [(k + 1) % NODES, (k * 7) % NODES] for k in range(NODES)}),
    }
    for protocol, (part, value) in zip((2, 3, 4, 5, 2, 2), parts.items(), strict=True):
        (folder / f"ind.cora.{part}").write_bytes(pickle.dumps(value, protocol=protocol))
    (folder / "ind.cora.test.index").write_text("".join(f"{k}\n" for k in range(39, 29, -1)))


def _read_planetoid(folder: Path, _: Path) -> object:
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    return read_planetoid(folder, name="cora", digests=digests)


def _write_images(folder: Path, *, suffix: str) -> None:
    colours = torch.linspace(0, 1, 3 * 12 * 9).reshape(3, 12, 9)
    opacity = np.arange(108, dtype=np.uint8).reshape(12, 9)
    pictures = {
        "grey.png": Picture(colours[:1]),
        "rgb.png": Picture(colours),
        "alpha.png": Picture(colours, opacity),
        "deep.png": Picture(colours, bits=16),
        "photo.jpg": Picture(colours),
        "grey.tif": Picture(colours[:1], bits=16),
        "rgb.tif": Picture(colours),
        "alpha.tif": Picture(colours, opacity),
    }
    for name, picture in pictures.items():
        if name.endswith(suffix):
            (folder / name).write_bytes(encode_image(picture, folder / name))


def _read_images(folder: Path, out: Path) -> object:
    found = {path.name: read_image(path) for path in sorted(folder.iterdir())}
    for name, picture in found.items():
        (out / name).write_bytes(encode_image(picture, out / name))
    return found


def _read_graph(folder: Path, _: Path) -> object:
    """Read a graph and make of it what training starts from."""
    table = read_graph(folder)
    targets = read_targets(table.labels) if table.labels else None
    return LabelledGraph.of_table(table, Preprocessing.learn(table.columns, table.x, ids=table.ids), targets)


GIVEN_FILES: Mapping[str, Reader] = {
    "csv": Reader(partial(write_text, suffix=".csv", separator=","), _read_graph, {"": "text"}),
    "tsv": Reader(partial(write_text, suffix=".tsv", separator="\t"), _read_graph, {"": "text"}),
    "edge list": Reader(_write_edge_list, lambda folder, _: read_graph(folder / "graph.edges"), {"": "text"}),
    "parquet": Reader(_write_parquet, _read_graph, {"": "binary"}),
    "npz": Reader(lambda folder: np.savez(folder / "graph.npz", **_arrays()), _read_graph, {"": "zip"}),
    "published npz": Reader(
        lambda folder: np.savez_compressed(folder / "photo.npz", **_published()),
        lambda folder, _: read_npz(folder / "photo.npz", name="photo", digest=npz_digest(folder / "photo.npz")),
        {"": "zip"},
    ),
    "graphml": Reader(_write_graphml, _read_graph, {"": "text"}),
    "planetoid": Reader(_write_planetoid, _read_planetoid, {"index": "text", "": "binary"}),
    "png": Reader(partial(_write_images, suffix=".png"), _read_images, {"": "png"}),
    "jpeg": Reader(partial(_write_images, suffix=".jpg"), _read_images, {"": "binary"}),
    "tiff": Reader(partial(_write_images, suffix=".tif"), _read_images, {"": "binary"}),
}
"""Readers of the files that a user gives, by name."""
