"""Parts of SVG that all figures share: the element with its description, and texts."""

from collections.abc import Sequence

from beltrami.report.figure import Figure
from beltrami.report.markup import text

MARGIN, ROW = 10.0, 18.0
CHARACTER = 6.7  # the mean width of a character of the labels


def svg_element(figure: Figure, width: float, height: float, parts: Sequence[str]) -> str:
    """Return the element, with the title and the sentence of the figure for screen readers."""
    key = text(figure.key)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="figure" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-labelledby="{key}-title {key}-desc"><title id="{key}-title">{text(figure.title)}</title>'
        f'<desc id="{key}-desc">{text(figure.says)}</desc>\n' + "\n".join(parts) + "\n</svg>"
    )


def label(words: str, x: float, y: float, style: str = "name", *, anchor: str = "start", full: str = "") -> str:
    """Return a line of text; the full text, where it was shortened, appears under the pointer."""
    title = f"<title>{text(full)}</title>" if full and full != words else ""
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text(words)}{title}</text>'


def text_width(words: str) -> float:
    """Return about how wide a text is."""
    return CHARACTER * len(words)
