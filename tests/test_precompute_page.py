"""The numbers of docs/howto/precompute.md are those of results/precomputed.jsonl."""

import json
from pathlib import Path
from statistics import fmean, stdev

from beltrami.config.parser import override
from beltrami.config.recipe.precomputed import SETTINGS, TRIED, WORDS
from beltrami.config.spec_rows import DatasetSpec, RowConfig

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "howto" / "precompute.md").read_text()
ROWS = [json.loads(line) for line in (ROOT / "results" / "precomputed.jsonl").read_text().splitlines()]


def accuracies(method: str, name: str) -> list[float]:
    return [row[f"{name}_accuracy"] for row in ROWS if row.get("method") == method]


def test_the_table_holds_the_means_of_the_recorded_runs() -> None:
    for method in ("precomputed", "blend"):
        val, test = accuracies(method, "val"), accuracies(method, "test")
        assert len(test) == 10
        assert f"| {fmean(val):.2f} | {fmean(test):.2f} ± {stdev(test):.2f} | 10 seeds |" in PAGE
    (one,), (other,) = accuracies("linear", "val"), accuracies("linear", "test")
    assert f"| {one:.2f} | {other:.2f} | 1, no random numbers |" in PAGE


def test_the_recipe_has_the_settings_that_validation_preferred() -> None:
    searched = [row for row in ROWS if row["what"] == "search"]
    assert not any("test_accuracy" in row for row in searched)
    best = max(searched, key=lambda row: row["mean"])
    start = RowConfig(data=DatasetSpec(name="cora"))
    assert override(start, SETTINGS["cora"]) == override(start, [*WORDS, *best["settings"]])
    tried = {override(start, [*WORDS, *row["settings"]]) for row in searched}
    assert len(tried) == TRIED["cora"]
    assert f"{TRIED['cora']} configurations compared" in PAGE
