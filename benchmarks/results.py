"""docs/results.md and its figures, from the lines under results/study; ``--write`` puts them there.

python benchmarks/results.py [--write]
"""

import sys
from pathlib import Path

from beltrami.lab.study.record import read_folder
from beltrami.report.study_page import results_page, write_page

ROOT = Path(__file__).parents[1]

if __name__ == "__main__":
    results = read_folder(ROOT / "results" / "study")
    if "--write" in sys.argv[1:]:
        write_page(results, ROOT / "docs" / "results.md")
    else:
        print(results_page(results), end="")
