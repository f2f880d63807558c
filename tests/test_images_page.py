"""docs/images.md: its tables and numbers are those of the result file."""

import json
from pathlib import Path

import denoise
import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "images.md").read_text()
RESULT = json.loads((ROOT / "results" / "image" / "denoise.json").read_text())
PSNR = {(row["method"], row["image"]): row["psnr"] for row in RESULT["rows"]}
GREY, COLOUR = ("camera", "coins"), ("astronaut",)


def test_tables_equal_those_made_from_the_results() -> None:
    for table in denoise.tables():
        assert table in PAGE


@pytest.mark.parametrize("flow", ["LaplaceBeltrami", "InverseMetric"])
def test_flows_exceed_other_filters_by_the_margins_of_the_page(flow: str) -> None:
    for image in GREY + COLOUR:
        assert PSNR[flow, image] >= PSNR["bilateral, scikit-image", image] + 1.5
        assert PSNR[flow, image] >= PSNR["bilateral, eq. (6)", image] + 0.8
        assert PSNR[flow, image] >= PSNR["total variation", image]


def test_time_on_the_page_is_the_measured_one() -> None:
    best = min(RESULT["megapixel"]["runs"], key=lambda run: run["seconds"])
    text = " ".join(PAGE.split())
    assert f"takes {best['seconds']:.1f} s on {('one thread', 'two threads')[best['threads'] - 1]}" in text
    assert f"{best['cpu_seconds']:.1f} s of work" in text
    assert best["seconds"] < 10
