"""LabelSpreading's accuracy on the digits, on the splits that the digits' recipe is measured on.

python benchmarks/label_spreading.py
"""

import json
import statistics
from pathlib import Path

import sklearn

from beltrami.data import load, make_split
from beltrami.lab.label_spreading import spread_labels
from beltrami.train import write_atomically

OUT = Path(__file__).parents[1] / "results" / "label_spreading.json"


def main() -> None:
    dataset = load("digits")
    splits = [make_split(dataset, protocol="shchur", seed=seed) for seed in range(10)]
    found = [spread_labels(dataset, split) for split in splits]
    result = {
        "dataset": "digits",
        "protocol": "shchur",
        "splits": [split.hash for split in splits],
        "mean": {kernel: statistics.mean(run[kernel] for run in found) for kernel in found[0]},
        "runs": found,
        "scikit-learn": sklearn.__version__,
    }
    write_atomically(OUT, (json.dumps(result, indent=2) + "\n").encode())
    print({kernel: round(mean, 2) for kernel, mean in result["mean"].items()})


if __name__ == "__main__":
    main()
