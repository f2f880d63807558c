"""Measurements are readable in a narrow terminal: a line a quantity, a column a measurement."""

import pytest

from beltrami.report.bench import measurements


def test_seconds_are_shown_as_milliseconds_beside_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"size": "cora", "gat_s": 0.0847, "frozen_ratio": 0.457}, {"size": "computers", "gat_s": 0.749}]
    measurements(rows, ["size", "gat_s", "frozen_ratio"], title="train on cpu")
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines == [
        ["train", "on", "cpu"],
        ["cora", "computers"],
        ["gat", "(ms)", "84.7", "749"],
        ["frozen", "ratio", "0.457"],
    ]


def test_operations_stand_below_their_size(capsys: pytest.CaptureFixture[str]) -> None:
    measurements([{"size": "cora", "operation": "attend", "gb": 1}], ["size", "operation", "gb"], title="kernels")
    out = capsys.readouterr().out
    assert out.index("cora") < out.index("attend") < out.index("gb")
