"""Draw the figures of the documentation again: run the code of the gallery and of the concept pages.

python docs/make_figures.py             writes docs/gallery/*.svg
python docs/make_figures.py scheme      those of docs/concepts/scheme.md alone
"""

import os
import re
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

DOCS = Path(__file__).parent
STYLE = DOCS / "assets" / "figure.mplstyle"


BOXES = {
    "data\ndataset, split": (0, 1),
    "position\nencoding": (1, 2),
    "prepare\nchecked inputs": (1, 1),
    "psi, phi\nz(0)": (2, 2),
    "stencil\nE'": (2, 0),
    "flow.bind\nf(t, z)": (3, 1),
    "scheme\nz(T)": (4, 1),
    "xi\noutputs": (5, 1),
    "task\nloss": (6, 1),
    "optimiser": (6, 2),
}  # column and row
BOX = {"boxstyle": "round,pad=0.5", "facecolor": "none", "edgecolor": "#3f7fd0"}
ARROWS = "01 02 12 23 24 34 35 45 56 67 78 89 93"  # from box to box of the list above, by their numbers


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


def draw_training_step(folder: Path) -> None:
    """Draw the parts of a training step, for docs/architecture.md."""
    with mpl.rc_context(fname=STYLE):
        figure, panel = plt.subplots(figsize=(9.5, 3))
        panel.set(xlim=(-0.5, 6.5), ylim=(-0.5, 2.5))
        boxes = [panel.text(*at, text, ha="center", va="center", fontsize=8.5, bbox=BOX) for text, at in BOXES.items()]
        figure.canvas.draw()  # arrows end at the boxes, which have no size before
        for start, end in (map(int, pair) for pair in ARROWS.split()):
            ends = {"patchA": boxes[start].get_bbox_patch(), "patchB": boxes[end].get_bbox_patch(), "shrinkB": 3}
            arrow = {"arrowstyle": "-|>", "color": "#8b94a3", **ends}
            panel.annotate("", xytext=boxes[start].get_position(), xy=boxes[end].get_position(), arrowprops=arrow)
        panel.axis("off")
        figure.savefig(folder / "training-step.svg")


if __name__ == "__main__":
    for page in pages():
        if not sys.argv[1:] or page.stem in sys.argv[1:]:
            draw(page, DOCS / "gallery")
    draw_training_step(DOCS / "gallery")
