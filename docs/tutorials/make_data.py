"""Write the tables of the tutorials: wine and breast cancer from scikit-learn, the karate club from networkx.

    python docs/tutorials/make_data.py docs/tutorials/data

The labels of most rows are removed, by a fixed seed, and kept in a second file, so that predictions can be compared.
"""

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine

SEED = 0
WINES = ("barolo", "grignolino", "barbera")


def main(folder: Path) -> None:
    """Write all files into a folder."""
    wine = load_wine()
    names = [name.split("/")[0] for name in wine.feature_names]
    write_table(folder / "wine.csv", "wine", names, wine.data, [WINES[c] for c in wine.target], labelled=30)
    cancer = load_breast_cancer()
    classes = [str(cancer.target_names[c]) for c in cancer.target]
    names = [name.replace(" ", "_") for name in cancer.feature_names]
    write_table(folder / "breast-cancer.csv", "sample", names, cancer.data, classes, labelled=100)
    write_club(folder / "karate")


def write_table(
    path: Path, name: str, columns: Sequence[str], values: Any, classes: Sequence[str], *, labelled: int
) -> None:
    """Write a table of numbers, with the classes of ``labelled`` rows, and the classes of all rows beside it."""
    ids = [f"{name}-{k + 1:03d}" for k in range(len(classes))]
    shown = _chosen(len(classes), labelled)
    rows = [
        [node, *(f"{value:g}" for value in row), label if has else ""]
        for node, row, label, has in zip(ids, values, classes, shown, strict=True)
    ]
    _write(path, ["id", *columns, "class"], rows)
    _write(path.with_stem(f"{path.stem}-truth"), ["id", "class"], list(zip(ids, classes, strict=True)))


def write_club(folder: Path, *, labelled: int = 4) -> None:
    """Write the members of the karate club, with the side of ``labelled`` members of each side, and the edges, with
    what two members do together as weight."""
    club = nx.karate_club_graph()
    sides = [str(side) for _, side in club.nodes(data="club")]
    members = [(f"member-{k + 1}", side) for k, side in enumerate(sides)]
    shown = np.zeros(len(sides), dtype=bool)
    for side in set(sides):
        found = np.flatnonzero(np.array(sides) == side)
        shown[found[_chosen(len(found), labelled)]] = True
    rows = [[member, side if has else ""] for (member, side), has in zip(members, shown, strict=True)]
    _write(folder / "nodes.csv", ["id", "class"], rows)
    _write(folder.parent / "karate-truth.csv", ["id", "class"], members)
    edges = [[f"member-{j + 1}", f"member-{i + 1}", weight] for j, i, weight in club.edges(data="weight")]
    _write(folder / "edges.csv", ["source", "target", "weight"], edges)


def _chosen(rows: int, labelled: int) -> Any:
    """Return a mask of the rows that keep their labels, drawn by the seed."""
    return np.random.RandomState(SEED).permutation(rows) < labelled


def _write(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
