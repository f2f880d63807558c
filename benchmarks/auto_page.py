"""Write the tables of docs/own-graphs.md from the files under `results/`."""

import argparse
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "own-graphs.md"
BASELINES = {
    "logistic regression": "logistic regression",
    "label propagation": "label propagation",
    "linear": "linear diffusion",
}
TITLES = {
    "cora": "Cora",
    "citeseer": "Citeseer",
    "pubmed": "PubMed",
    "coauthor-cs": "Coauthor CS",
    "computers": "Computers",
    "photo": "Photo",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the page; without it, print the tables")
    if parser.parse_args().write:
        PAGE.write_text(with_tables(PAGE.read_text()))
    else:
        print("\n\n".join(tables().values()))


def with_tables(text: str) -> str:
    """Return a page with every text between `<!-- table: NAME -->` and `<!-- end -->` replaced by that table."""
    for name, table in tables().items():
        found = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text, count = found.subn(rf"\1\n{table}\n\n\2", text)
        if count != 1:
            raise ValueError(f"the page has {count} places for the table {name!r}, not one")
    return text


def tables() -> dict[str, str]:
    records = _lines("results/auto.jsonl")
    random = _merged(record for record in records if record["protocol"] == "digl")
    published = _merged(record for record in records if record["protocol"] == "planetoid")
    return {
        "auto": accuracy(random),
        "confidence": confidence(random, published),
        "scale": scale(_lines("results/feature_scale.jsonl")),
    }


def accuracy(graphs: dict[str, dict[str, Any]]) -> str:
    """Return the table of test accuracies: `auto`, the recipe tuned on the graph, the best baseline."""
    tuned = {
        (line["dataset"], line["split_seed"]): line["result"]["test_accuracy"]
        for line in _lines("results/study/random.jsonl")
        if line.get("row") == "blend" and line["result"]
    }
    rows = [["graph", "splits", "`auto`", "tuned recipe", "difference", "best baseline", "difference"]]
    for name, record in graphs.items():
        auto = np.array([each["test"] for each in record["chosen"]])
        other = np.array([tuned[name, seed] for seed in record["seeds"]])
        best = max(BASELINES, key=lambda each: np.mean([row[each]["val"] for row in record["members"]]))
        baseline = np.array([row[best]["test"] for row in record["members"]])
        rows.append(
            [
                TITLES[name],
                str(len(auto)),
                f"{auto.mean():.2f}",
                f"{other.mean():.2f}",
                _difference(auto - other),
                f"{baseline.mean():.2f} ({BASELINES[best]})",
                _difference(auto - baseline),
            ]
        )
    return _table(rows)


def confidence(random: dict[str, dict[str, Any]], published: dict[str, dict[str, Any]]) -> str:
    """Return the table of calibration errors, of the coverage of 90% sets and of their sizes."""
    rows = [
        ["graph", "split", "runs", "error before", "error after", "after, together", "coverage of 90% sets", "mean set"]
    ]
    for title, graphs in (("random", random), ("published", published)):
        for name, record in graphs.items():
            chosen = record["chosen"]
            before, after, coverage, size = (
                np.array([each[key] for each in chosen])
                for key in ("error_before", "error_after", "coverage", "set_size")
            )
            surplus = np.array([each["bins_after"] for each in chosen]).sum(0)
            together = 100 * np.abs(surplus).sum() / sum(each["test_nodes"] for each in chosen)
            error = 1.96 * coverage.std(ddof=1) / len(coverage) ** 0.5
            rows.append(
                [
                    TITLES[name],
                    title,
                    str(len(chosen)),
                    f"{before.mean():.1f}",
                    f"{after.mean():.1f}",
                    f"{together:.1f}",
                    f"{coverage.mean():.1f} ± {error:.1f}",
                    f"{size.mean():.2f}",
                ]
            )
    return _table(rows)


def scale(lines: list[dict[str, Any]]) -> str:
    """Return the table of accuracies after each rescaling of the features, of linear diffusion and of a flow."""
    rescalings = list(dict.fromkeys(line["rescaling"] for line in lines))
    rows = [["graph, model", *rescalings]]
    for name, title in TITLES.items():
        for model in ("linear", "cosine"):
            found = {line["rescaling"]: line[model] for line in lines if line["graph"] == name}
            rows.append([f"{title}, `{model}`", *(f"{found[each]:.2f}" for each in rescalings)])
    return _table(rows)


def _merged(records: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the records by graph, those of one graph joined."""
    graphs: dict[str, dict[str, Any]] = {}
    for record in records:
        found = graphs.setdefault(record["graph"], {"seeds": [], "members": [], "chosen": []})
        found["seeds"] += range(record["first"], record["first"] + len(record["members"]))
        found["members"] += record["members"]
        found["chosen"] += record["chosen"]
    return graphs


def _difference(values: np.ndarray) -> str:
    return f"{values.mean():+.2f} ± {1.96 * values.std(ddof=1) / len(values) ** 0.5:.2f}"


def _table(rows: list[list[str]]) -> str:
    lines = [" | ".join(row) for row in rows]
    lines.insert(1, " | ".join(["---", *["---:"] * (len(rows[0]) - 1)]))
    return "\n".join(f"| {line} |" for line in lines)


def _lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ROOT / path).read_text().splitlines()]


if __name__ == "__main__":
    main()
