"""Draw the figures of the documentation again: run the code of the gallery and of the concept pages.

python docs/make_figures.py             writes docs/gallery/*.svg
python docs/make_figures.py scheme      those of docs/concepts/scheme.md alone
"""

import os
import re
import sys
from pathlib import Path

import matplotlib as mpl

DOCS = Path(__file__).parent
STYLE = DOCS / "assets" / "figure.mplstyle"


def pages() -> list[Path]:
    """Return the pages whose code draws figures."""
    return [DOCS / "gallery.md", *sorted((DOCS / "concepts").glob("*.md"))]


def draw(page: Path, folder: Path) -> None:
    """Run the Python code of a page in ``folder``, in one namespace."""
    os.environ["SOURCE_DATE_EPOCH"] = "0"  # matplotlib writes the date into an SVG
    os.chdir(folder)
    mpl.use("svg")
    names: dict[str, object] = {}
    with mpl.rc_context(fname=STYLE):
        for code in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL):
            exec(code, names)


if __name__ == "__main__":
    for page in pages():
        if not sys.argv[1:] or page.stem in sys.argv[1:]:
            draw(page, DOCS / "gallery")
