"""Update the line numbers of the links in docs/paper.md.

python benchmarks/paper.py [--write]

A link to code is ``[`Cosine`](../src/beltrami/diffusivity/dot.py#L51 "class Cosine > F.normalize(key")``. Its title
determines the line: ``class Cosine`` must occur on exactly one line of the file; the link goes to the first line of the
indented block below it that contains ``F.normalize(key``. Without ``--write`` the script prints wrong line numbers.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "paper.md"
LINK = re.compile(r'\((?P<path>[^()\s]+\.py)#L(?P<line>\d*) "(?P<title>[^"]+)"\)')


def line_of(title: str, lines: Sequence[str]) -> int:
    """Return the number, from 1, of the line that a title determines."""
    first, *inner = title.split(" > ")
    found = [k for k, line in enumerate(lines) if first in line]
    if len(found) != 1:
        raise ValueError(f"a title must begin with text that is on one line only; {first!r} is on {len(found)} lines.")
    (at,) = found
    for part in inner:
        at = next((k for k in _block(at, lines) if part in lines[k]), -1)
        if at < 0:
            raise ValueError(f"the block of the title {title!r} has no line with {part!r}.")
    return at + 1


def with_line_numbers(text: str, folder: Path = PAGE.parent) -> str:
    """Return the text with the line number of every link to code updated; paths are relative to ``folder``."""

    def updated(link: re.Match[str]) -> str:
        path, title = folder / link["path"], link["title"]
        try:
            line = line_of(title, path.read_text().splitlines())
        except ValueError as error:
            raise ValueError(f"cannot resolve a link to {link['path']}: {error}") from None
        return f'({link["path"]}#L{line} "{title}")'

    return LINK.sub(updated, text)


def _block(start: int, lines: Sequence[str]) -> Iterator[int]:
    """Return the indices of the lines in the indented block below ``start``, with the closing bracket of its header."""
    margin = _indent(lines[start])
    for k in range(start + 1, len(lines)):
        line = lines[k]
        if line.strip() and _indent(line) <= margin and not line.lstrip().startswith(")"):
            return
        yield k


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


if __name__ == "__main__":
    text = PAGE.read_text()
    if "--write" in sys.argv[1:]:
        PAGE.write_text(with_line_numbers(text))
    else:
        for old, new in zip(LINK.finditer(text), LINK.finditer(with_line_numbers(text)), strict=True):
            if old["line"] != new["line"]:
                print(f"{old['path']}, {old['title']}: line {old['line']} should be {new['line']}")
