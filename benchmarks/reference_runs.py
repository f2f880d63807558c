"""Train 24 short runs by the command line and compare their accuracies and weights, to the bit, with recorded ones.

A refactoring must leave every number unchanged: run ``--record`` before it and ``--check`` after it, on one machine.
The bits depend on the processor and on torch's build, so another machine records its own file first.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from safetensors import safe_open

RUNS: tuple[tuple[str, str, int], ...] = (  # dataset, recipe, epochs
    ("digits", "blend", 20),
    ("digits", "uniform", 10),
    ("digits", "gcn", 20),
    ("digits", "gat", 10),
    ("digits", "cgnn", 5),
    ("digits", "polyakov", 3),
    ("digits", "gat-flow", 10),
    ("digits", "blend-knn", 10),
    ("cora", "blend", 10),
    ("cora", "uniform", 6),
    ("cora", "gcn", 20),
    ("cora", "gat", 6),
    ("cora", "cgnn", 4),
    ("cora", "polyakov", 3),
    ("cora", "gat-flow", 6),
    ("cora", "blend-knn", 4),
    ("citeseer", "blend", 6),
    ("citeseer", "uniform", 6),
    ("citeseer", "gat", 4),
    ("citeseer", "blend-knn", 3),
    ("pubmed", "blend", 4),
    ("pubmed", "uniform", 4),
    ("pubmed", "gcn", 6),
    ("pubmed", "gat-flow", 3),
)
FILE = Path("results/reference_runs.json")


def digest(weights: Path) -> str:
    """Digest of all weights of a file, whatever their names; what training found besides them is left out."""
    with safe_open(weights, framework="numpy") as file:
        arrays = [file.get_tensor(name) for name in file.keys() if not name.endswith("_extra_state")]  # noqa: SIM118
    each = sorted(hashlib.sha256(f"{a.dtype}{a.shape}".encode() + a.tobytes()).hexdigest() for a in arrays)
    return hashlib.sha256("".join(each).encode()).hexdigest()


def train(dataset: str, recipe: str, epochs: int) -> dict[str, object]:
    """Train one run in a process of its own, on one thread, and return what must not change."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "beltrami", "train", dataset, "--recipe", recipe, "--seed", "1"]
        command += ["--set", f"train.epochs={epochs}", "--out", folder]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        if done.returncode:
            raise RuntimeError(f"{dataset} / {recipe} ended with {done.returncode}: {done.stderr.strip()}")
        result = json.loads((Path(folder) / "result.json").read_text())
        return {
            "val_accuracy": result["val_accuracy"],
            "test_accuracy": result["test_accuracy"],
            "weights": digest(Path(folder) / "model.safetensors"),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the file in place of comparing with it")
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    with ThreadPoolExecutor(options.processes) as pool:
        found = list(pool.map(lambda run: train(*run), RUNS))
    runs = {f"{dataset} {recipe} {epochs}": each for (dataset, recipe, epochs), each in zip(RUNS, found, strict=True)}
    if options.record:
        options.file.write_text(json.dumps(runs, indent=1) + "\n")
        return
    recorded = json.loads(options.file.read_text())
    for name, each in runs.items():
        print(f"{'same' if each == recorded.get(name) else 'DIFFERENT'}  {name}  {each['test_accuracy']:.2f}")
    same = sum(each == recorded.get(name) for name, each in runs.items())
    print(f"{same} of {len(runs)} runs are the same to the bit")
    sys.exit(same != len(runs))


if __name__ == "__main__":
    main()
