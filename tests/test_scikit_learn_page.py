"""docs/scikit-learn.md: its table is that of the recorded runs."""

import json
from pathlib import Path

import estimator as benchmark

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "scikit-learn.md").read_text()


def test_the_table_is_that_of_the_recorded_runs() -> None:
    lines = [json.loads(line) for line in benchmark.OUT.read_text().splitlines()]
    written = PAGE[PAGE.index("<!-- estimator -->") : PAGE.index("<!-- /estimator -->")].splitlines()[1:]
    assert written == benchmark.table(lines)


def test_the_estimator_is_above_the_better_rival_or_within_the_interval() -> None:
    rows = [
        line.split("|")[1:-1]
        for line in PAGE[PAGE.index("<!-- estimator -->") :].split("<!-- /estimator -->")[0].splitlines()[3:]
    ]
    gains = [[float(part) for part in row[6].split("±")] for row in rows]
    assert len(gains) == 6
    assert sum(gain >= 0 for gain, _ in gains) >= 5
    assert all(gain + half > 0 for gain, half in gains)
