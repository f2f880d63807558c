"""Write the table of docs/howto/large-graphs.md from results/preprocess_large.json."""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE, RECORD = ROOT / "docs" / "howto" / "large-graphs.md", ROOT / "results" / "preprocess_large.json"
STEPS = {
    "generate": "edges drawn, sorted and written, with vectors of 16 channels",
    "push": "PageRank rows, {top} entries, restart {restart:g}, tolerance {tolerance:g}",
    "nearest rows": "nearest rows, k = {k}, {lists_searched} lists searched",
}


def with_table(text: str) -> str:
    """Return the page with the table and the overlaps of the record."""
    stages = json.loads(RECORD.read_text())["stages"]
    rows = ["| step | time | private memory, peak | mapped files, peak |", "| --- | ---: | ---: | ---: |"]
    rows += [_row(STEPS[name].format(**stages[name]), stages[name]) for name in STEPS]
    exact, power, nearest = (
        stages.get(name) for name in ("exact rows of PageRank", "power iteration", "exact nearest rows")
    )
    found = [
        f"Of the exact 32 largest entries of a row push finds {100 * exact['overlap_of_the_top_32']:.1f}%, which hold "
        f"{100 * exact['share_of_the_mass_of_the_exact_top_32']:.1f}% of their sum ({exact['rows']:,} rows)."
    ]
    if power:
        found.append(
            f"The exact entries agree with power iteration at {power['sources']} nodes: overlap "
            f"{100 * power['overlap_of_the_reference']:.1f}%."
        )
    if nearest:
        found.append(
            f"Of the exact 16 nearest rows the search finds {100 * nearest['recall']:.1f}% ({nearest['rows']:,} rows)."
        )
    content = "\n".join([*rows, "", *found])
    return re.sub(r"(<!-- table: preprocess -->\n).*?(<!-- end -->)", rf"\1\n{content}\n\n\2", text, flags=re.DOTALL)


def _row(step: str, stage: dict[str, Any]) -> str:
    memory = [f"{stage[f'peak_{kind}_gib']:.1f} GiB" for kind in ("private_memory", "mapped_files")]
    return f"| {step} | {stage['seconds'] / 60:.0f} min | {memory[0]} | {memory[1]} |"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
