"""docs/howto/large-graphs.md: its table is that of the recorded measurement, which kept to its limits."""

import json

from large_page import PAGE, RECORD, with_table


def test_the_table_is_that_of_the_record() -> None:
    text = PAGE.read_text()
    assert with_table(text) == text, "the record has changed: run `python benchmarks/large_page.py`"


def test_the_measurement_kept_to_its_limits() -> None:
    record = json.loads(RECORD.read_text())
    assert record["nodes"] == 10_000_000
    assert record["directed_edges"] >= 99_000_000
    assert record["stages"]["push"]["rows"] == record["nodes"]
    assert all(stage["peak_private_memory_gib"] < 16 for stage in record["stages"].values())
