"""A small graph of two groups as CSV files, and the way from files to the rows of predictions.csv."""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from beltrami.auto.fit_graph import fit_graph
from beltrami.data.graph_reader import read_graph
from beltrami.predict.predictor import Predictor

Row = dict[str, str]


@dataclass
class Files:
    """The rows of nodes.csv and edges.csv, to be changed by a test; ``truth`` has the group of every node."""

    nodes: list[Row]
    edges: list[Row]
    truth: dict[str, str]

    def write(self, folder: Path) -> Path:
        """Write the files that have rows into a folder, and return the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in (("nodes", self.nodes), ("edges", self.edges)):
            if rows:
                with (folder / f"{name}.csv").open("w", newline="") as file:
                    writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
                    writer.writeheader()
                    writer.writerows(rows)
        return folder

    def label(self, kept: Callable[[int], bool]) -> None:
        """Label the nodes that ``kept`` chooses by their number, and no others."""
        for k, row in enumerate(self.nodes):
            row["class"] = self.truth[row["id"]] if kept(k) else ""

    def add(self, name: str, value: Callable[[int], object]) -> None:
        """Add a column to the nodes, or replace it."""
        for k, row in enumerate(self.nodes):
            row[name] = str(value(k))


def two_groups(nodes: int = 40, *, labelled: int = 24, columns: int = 2) -> Files:
    """Return ``nodes`` nodes, cats with even numbers and dogs with odd ones, of which the first ones are labelled.

    Each is joined to the next two of its group, and one edge joins the groups. The columns have means 2 apart.
    """
    random = np.random.RandomState(0)
    truth = {f"n{k}": ("cat", "dog")[k % 2] for k in range(nodes)}
    values = random.randn(nodes, columns) + 2 * (np.arange(nodes) % 2)[:, None]
    rows = [{"id": f"n{k}"} | {f"f{c}": f"{values[k, c]:.4f}" for c in range(columns)} for k in range(nodes)]
    steps = [(k, (k + step) % nodes) for k in range(nodes) for step in (2, 4)]
    files = Files(rows, [{"source": f"n{j}", "target": f"n{i}"} for j, i in [*steps, (0, 1)]], truth)
    files.label(lambda k: k < labelled)
    return files


def fit(source: Any = None, *, tables: dict[str, Any] | None = None, **options: Any) -> Predictor:
    """Read a graph, with ``tables`` as further arguments, and fit it, by linear diffusion unless told otherwise."""
    return fit_graph(read_graph(source, **(tables or {})), **{"fast": True, **options})


def predicted(
    predictor: Predictor,
    folder: Path,
    table: Any = None,
    *,
    coverage: float | None = None,
    from_features: bool = False,
) -> dict[str, Row]:
    """Save the predictor, load it, predict, and return the rows of predictions.csv by id."""
    predictor.save(folder / "run")
    found = Predictor.load(folder / "run").predict(table, coverage=coverage, from_features=from_features)
    found.write(folder / "predictions.csv")
    with (folder / "predictions.csv").open(newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def from_files(
    folder: Path, files: Files | None = None, *, from_features: bool = False, **options: Any
) -> dict[str, Row]:
    """Return the rows of predictions.csv by id, for files that are written first, or for those in the folder."""
    predictor = fit(folder if files is None else files.write(folder), **options)
    return predicted(predictor, folder, from_features=from_features)


@cache
def unchanged() -> dict[str, Row]:
    """Return the rows of predictions.csv for :func:`two_groups` as it is."""
    with TemporaryDirectory() as folder:
        return from_files(Path(folder) / "graph", two_groups())


def right(rows: dict[str, Row], files: Files) -> float:
    """Return the share of the nodes that have their group as prediction."""
    return sum(rows[node]["prediction"] == group for node, group in files.truth.items()) / len(files.truth)
