"""Read a page of HTML: its elements, its texts and its CSV files."""

import base64
import csv
import io
import re
from html.parser import HTMLParser

VOID = {"meta", "br", "img", "link", "input"}


class Page(HTMLParser):
    """The elements of a page, its texts, and the headings in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(" ".join(data.split()))


def csv_files(page: str) -> dict[str, list[list[str]]]:
    """Return the CSV files of a page by name, as rows."""
    found = re.findall(r'download="([\w-]+\.csv)" href="data:text/csv;charset=utf-8;base64,([^"]*)"', page)
    texts = {name: base64.b64decode(content).decode() for name, content in found}
    return {name: list(csv.reader(io.StringIO(text, newline=""))) for name, text in texts.items()}
