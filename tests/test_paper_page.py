"""docs/paper.md: every link leads to the line that its title names, and every equation of the paper is listed."""

import re
from pathlib import Path

import paper
import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "paper.md").read_text()
EQUATIONS = 27  # numbered equations of the paper, appendix included
FILE = """class Near:
    def score(
        self, z: float
    ) -> float:
        return z / 2


class Far:
    def score(self, z: float) -> float:
        return z / 3
"""


def test_every_link_has_the_line_number_of_its_title() -> None:
    assert paper.with_line_numbers(PAGE) == PAGE, "line numbers have changed: run `python benchmarks/paper.py --write`"


def test_every_link_to_code_has_a_title_that_contains_its_name() -> None:
    links = re.findall(r'\[`([^`]+)`\]\([^()\s]+\.py#L\d+ "([^"]+)"\)', PAGE)
    assert len(links) == PAGE.count(".py#")
    for name, title in links:
        assert all(part in title for part in name.split(".")), f"{name} is not in {title!r}"


def test_every_linked_file_exists() -> None:
    pages = [path for path in re.findall(r"\]\(([^()\s#]+)", PAGE) if not path.startswith("https://")]
    assert pages
    assert all((ROOT / "docs" / path).is_file() for path in pages)


def test_all_equations_are_listed_in_order() -> None:
    assert [int(number) for number in re.findall(r"\*\*\((\d+)\)\*\*", PAGE)] == list(range(1, EQUATIONS + 1))


def test_every_equation_links_code_and_a_test() -> None:
    for entry in re.split(r"\n\n", PAGE):
        if entry.startswith("**("):
            assert "](../src/" in entry, entry
            assert "](../tests/" in entry, entry


def test_no_formula_spans_two_lines() -> None:
    assert [line for line in PAGE.splitlines() if line.count("$") % 2] == []


def test_every_item_of_where_the_text_needs_care_is_mentioned() -> None:
    section = (ROOT / "docs" / "decisions.md").read_text().partition("## Where the paper's text needs care")[2]
    numbers = re.findall(r"^(\d+)\. ", section.partition("\n## ")[0], flags=re.MULTILINE)
    assert len(numbers) >= 9
    assert set(re.findall(r"\*care (\d+)\*", PAGE)) == set(numbers)


@pytest.mark.parametrize(
    ("title", "line"),
    [("class Far", 8), ("class Far > return", 10), ("class Near > def score > return", 5), ("z / 2", 5)],
)
def test_a_title_determines_a_line(title: str, line: int) -> None:
    assert paper.line_of(title, FILE.splitlines()) == line


@pytest.mark.parametrize(
    ("title", "message"),
    [
        ("def score", "is on 2 lines"),
        ("class Nowhere", "is on 0 lines"),
        ("class Near > z / 3", "has no line with 'z / 3'"),
    ],
)
def test_a_title_without_a_unique_line_is_refused(title: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        paper.line_of(title, FILE.splitlines())


def test_wrong_line_numbers_are_corrected_and_missing_lines_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text(FILE)
    update = paper.with_line_numbers
    assert update('[`Far`](file.py#L3 "class Far > return").', tmp_path) == '[`Far`](file.py#L10 "class Far > return").'
    with pytest.raises(ValueError, match=r"cannot resolve a link to file\.py"):
        update('[`Gone`](file.py#L "class Gone")', tmp_path)
