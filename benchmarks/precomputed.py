"""The recipe precomputed beside linear diffusion and BLEND on a published split, and the search for its settings.

    python benchmarks/precomputed.py search cora --try "model.dropout=0.5|0.8" --try "train.lr=0.01|0.03"
    python benchmarks/precomputed.py compare cora  # the recipe, linear diffusion and BLEND, seeds 0 to 9

Rows are appended to `results/precomputed.jsonl`. Rows of a search hold no test accuracy: settings are chosen by the
mean validation accuracy over seeds 0 to 2. Linear diffusion has no random numbers and one row.
"""

import argparse
import itertools
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from beltrami import train
from beltrami.auto.baselines import run_linear
from beltrami.config import load_recipe
from beltrami.config.recipe.precomputed import dataset_spec, precomputed
from beltrami.data import load, make_split
from beltrami.data.labelled_graph import LabelledGraph
from beltrami.graph.sparse_matrix import sparse_where_it_pays
from beltrami.result import RunResult
from beltrami.rows.row_run import run_rows
from beltrami.run import run_config

PROTOCOL = "planetoid"


def rows_of(dataset: str, seed: int, settings: Sequence[str] = ()) -> RunResult:
    """Train the recipe precomputed on a dataset."""
    spec = dataset_spec(dataset, protocol=PROTOCOL, split_seed=None, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        return run_rows(precomputed(spec, seed=seed, settings=settings), folder)


def search(dataset: str, tried: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the validation accuracies of all combinations of settings such as ``model.dropout=0.5|0.8``."""
    names = [text.partition("=")[0] for text in tried]
    for values in itertools.product(*(text.partition("=")[2].split("|") for text in tried)):
        settings = [f"{name}={value}" for name, value in zip(names, values, strict=True)]
        accuracies = [rows_of(dataset, seed, settings).val_accuracy for seed in range(3)]
        yield {"settings": settings, "val_accuracy": accuracies, "mean": sum(accuracies) / len(accuracies)}


def compare(dataset: str) -> Iterator[dict[str, Any]]:
    """Yield the accuracies of the three methods."""
    yield linear(dataset)
    for seed in range(10):
        yield {"method": "precomputed", **facts(rows_of(dataset, seed))}
    for seed in range(10):
        config = load_recipe("blend", dataset, protocol=PROTOCOL, seed=seed)
        yield {"method": "blend", **facts(run_config(config)[0])}


def facts(result: RunResult) -> dict[str, Any]:
    """Return what is recorded of a run."""
    names = ("seed", "val_accuracy", "test_accuracy", "epochs", "parameters", "diffused", "versions")
    return {name: getattr(result, name) for name in names}


def linear(dataset: str) -> dict[str, Any]:
    """Return the accuracies of linear diffusion, fitted by scikit-learn, with time and strength by validation."""
    data = load(dataset)
    split = make_split(data, protocol=PROTOCOL, seed=0)
    graph, _ = LabelledGraph.of_dataset(data)
    task = train.Classification(data.num_classes)
    result, _ = run_linear(sparse_where_it_pays(graph.x), graph.edges, data.y, [split], task=task)
    found = {"val_accuracy": 100 * result.validation, "test_accuracy": 100 * (result.test or 0.0)}
    return {"method": "linear", **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("search", "compare"))
    parser.add_argument("dataset")
    parser.add_argument("--try", action="append", default=[], dest="tried")
    parser.add_argument("--out", type=Path, default=Path("results/precomputed.jsonl"))
    options = parser.parse_args()
    searches = options.what == "search"
    for row in search(options.dataset, options.tried) if searches else compare(options.dataset):
        with options.out.open("a") as file:
            file.write(json.dumps({"what": options.what, "graph": options.dataset, "split": PROTOCOL, **row}) + "\n")
        print(row, flush=True)


if __name__ == "__main__":
    main()
