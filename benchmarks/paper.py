"""The line numbers in docs/paper.md, found again by the code that each link names; ``--write`` puts them there.

python benchmarks/paper.py [--write]

A link to code is ``[`Cosine`](../src/beltrami/diffusivity/dot.py#L51 "class Cosine > F.normalize(key")``. Its title
says which line: the only one of the file that holds ``class Cosine``, and within that block the first that holds
``F.normalize(key``. Without ``--write`` it prints the links that have gone astray.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "paper.md"
LINK = re.compile(r'\((?P<path>[^()\s]+\.py)#L(?P<line>\d*) "(?P<title>[^"]+)"\)')


def line_of(title: str, lines: Sequence[str]) -> int:
    """The number, from 1, of the line that a title names."""
    first, *inner = title.split(" > ")
    found = [k for k, line in enumerate(lines) if first in line]
    if len(found) != 1:
        raise ValueError(f"a title begins with what one line alone holds; {first!r} is on {len(found)} lines.")
    (at,) = found
    for part in inner:
        at = next((k for k in _block(at, lines) if part in lines[k]), -1)
        if at < 0:
            raise ValueError(f"the title {title!r} names {part!r}, which is not there.")
    return at + 1


def filled(text: str, folder: Path = PAGE.parent) -> str:
    """The text with the line number of every link to code found anew; paths are relative to ``folder``."""

    def found(link: re.Match[str]) -> str:
        path, title = folder / link["path"], link["title"]
        try:
            line = line_of(title, path.read_text().splitlines())
        except ValueError as error:
            raise ValueError(f"a link to {link['path']} leads nowhere: {error}") from None
        return f'({link["path"]}#L{line} "{title}")'

    return LINK.sub(found, text)


def _block(start: int, lines: Sequence[str]) -> Iterator[int]:
    """The lines below ``start`` that are indented more than it, a bracket that closes its own head among them."""
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
        PAGE.write_text(filled(text))
    else:
        for old, new in zip(LINK.finditer(text), LINK.finditer(filled(text)), strict=True):
            if old["line"] != new["line"]:
                print(f"{old['path']}, {old['title']}: line {old['line']} is now {new['line']}")
