"""Take a graph of a million nodes and five million edges from CSV files to predictions; record time and memory.

The nodes are in 20 communities; three of four edges stay within one. Of 16 noisy measurements per node, each community
shifts one or two. One node in fifty has a label. The files are written to a temporary folder; the result, with the
accuracy on the other nodes, to `results/million.json`.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

COMMUNITIES, COLUMNS, LABELLED, WITHIN = 20, 16, 0.02, 0.75


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=5_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--option", action="append", default=[], help="further options of `beltrami train`")
    parser.add_argument("--out", type=Path, default=Path("results/million.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        truth = write_graph(folder, options.nodes, options.edges)
        source = ["--nodes", str(folder / "nodes.csv"), "--edges", str(folder / "edges.csv"), "--label", "class"]
        table = folder / "predictions.csv"
        seconds = {
            "train": run(["train", *source, *options.option, "--out", str(folder / "run")], options.threads),
            "predict": run(["predict", str(folder / "run"), "--out", str(table)], options.threads),
        }
        right, counted = compare(table, folder / "nodes.csv", truth)
    record = {
        "nodes": options.nodes,
        "edges": options.edges,
        "threads": options.threads,
        "options": options.option,
        "seconds": seconds,
        "peak_gib": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20,
        "accuracy_on_other_nodes": 100 * right / counted,
    }
    options.out.write_text(json.dumps(record, indent=2) + "\n")
    print(json.dumps(record, indent=2))


def write_graph(folder: Path, nodes: int, edges: int) -> list[str]:
    """Write nodes.csv and edges.csv, and return the class of every node."""
    random = np.random.default_rng(0)
    community = random.integers(COMMUNITIES, size=nodes)
    shift = random.normal(0, 1, (COMMUNITIES, COLUMNS)) * (random.random((COMMUNITIES, COLUMNS)) < 0.1)
    names = [f"community {c}" for c in community]
    known = random.random(nodes) < LABELLED
    with (folder / "nodes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *(f"f{c}" for c in range(COLUMNS)), "class"])
        for low in range(0, nodes, 100_000):
            part = slice(low, min(nodes, low + 100_000))
            values = random.normal(0, 1, (len(community[part]), COLUMNS)) + shift[community[part]]
            labels = [names[low + k] if each else "" for k, each in enumerate(known[part])]
            rows = np.char.mod("%.4f", values).tolist()
            writer.writerows(
                [f"n{low + k}", *row, label] for k, (row, label) in enumerate(zip(rows, labels, strict=True))
            )
    members = [np.flatnonzero(community == c) for c in range(COMMUNITIES)]
    with (folder / "edges.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        for low in range(0, edges, 500_000):
            count = min(500_000, edges - low)
            source, target = random.integers(nodes, size=(2, count))
            for c in range(COMMUNITIES):
                inside = np.flatnonzero((community[source] == c) & (random.random(count) < WITHIN))
                target[inside] = random.choice(members[c], size=len(inside))
            writer.writerows((f"n{s}", f"n{t}") for s, t in zip(source.tolist(), target.tolist(), strict=True))
    return names


def run(arguments: list[str], threads: int) -> float:
    """Run a command of the command line and return its seconds."""
    start = time.perf_counter()
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    subprocess.run([sys.executable, "-m", "beltrami", *arguments], check=True, env=environment)
    return time.perf_counter() - start


def compare(table: Path, nodes: Path, truth: list[str]) -> tuple[int, int]:
    """Return how many predictions at nodes without a label are right, and of how many."""
    right = counted = 0
    with table.open(newline="") as predicted, nodes.open(newline="") as given:
        for row, node, name in zip(csv.DictReader(predicted), csv.DictReader(given), truth, strict=True):
            if not node["class"]:
                counted += 1
                right += row["prediction"] == name
    return right, counted


if __name__ == "__main__":
    main()
