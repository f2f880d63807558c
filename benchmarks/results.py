"""docs/results.md and its figures, from the lines under results/study; ``--write`` puts them there.

python benchmarks/results.py [--write]
"""

import sys
from pathlib import Path

from beltrami.lab.study import read_folder
from beltrami.report.study.page import page, write

ROOT = Path(__file__).parents[1]

if __name__ == "__main__":
    results = read_folder(ROOT / "results" / "study")
    if "--write" in sys.argv[1:]:
        write(results, ROOT / "docs" / "results.md")
    else:
        print(page(results), end="")
