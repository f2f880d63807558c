"""The number of configurations tried is that of the lists of the search."""

import json
from pathlib import Path

import pytest

from beltrami.config.search_count import ON_DATASETS, OURS

FOLDER = Path(__file__).parents[2] / "results" / "search"


@pytest.mark.skipif(not FOLDER.exists(), reason="the lists of the search are in the repository, not in the package")
def test_counts_are_those_of_the_lists() -> None:
    found: dict[str, set[tuple[str, ...]]] = {dataset: set() for dataset in ON_DATASETS}
    for path in FOLDER.glob("*.jsonl"):
        for text in path.read_text().splitlines():
            dataset, name, protocol, _, *settings = json.loads(text)["line"].split()
            if name in OURS:
                found[dataset].add((name, protocol, *settings))
    assert {dataset: len(search_count) for dataset, search_count in found.items()} == ON_DATASETS


@pytest.mark.skipif(not FOLDER.exists(), reason="the lists of the search are in the repository, not in the package")
def test_every_row_is_a_line_of_its_list() -> None:
    for path in FOLDER.glob("*.jsonl"):
        rows = {json.loads(text)["line"] for text in path.read_text().splitlines()}
        assert rows == {line for line in path.with_suffix(".txt").read_text().splitlines() if line[0] != "#"}
