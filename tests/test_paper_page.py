"""docs/paper.md tells the truth: its links lead to the lines they name, and no equation of the paper is left out."""

import re
from pathlib import Path

import paper
import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "paper.md").read_text()
EQUATIONS = 27  # numbered in the paper, appendix and all
FILE = """class Near:
    def score(
        self, z: float
    ) -> float:
        return z / 2


class Far:
    def score(self, z: float) -> float:
        return z / 3
"""


def test_every_link_leads_to_the_line_that_it_names() -> None:
    assert paper.filled(PAGE) == PAGE, "lines have moved: run `python benchmarks/paper.py --write`"


def test_every_link_to_code_names_its_line_and_bears_its_name() -> None:
    links = re.findall(r'\[`([^`]+)`\]\([^()\s]+\.py#L\d+ "([^"]+)"\)', PAGE)
    assert len(links) == PAGE.count(".py#")
    for name, title in links:
        assert all(part in title for part in name.split(".")), f"{name} is not in {title!r}"


def test_every_page_that_is_linked_is_there() -> None:
    pages = [path for path in re.findall(r"\]\(([^()\s#]+)", PAGE) if not path.startswith("https://")]
    assert pages
    assert all((ROOT / "docs" / path).is_file() for path in pages)


def test_every_equation_is_there_in_order() -> None:
    assert [int(number) for number in re.findall(r"\*\*\((\d+)\)\*\*", PAGE)] == list(range(1, EQUATIONS + 1))


def test_every_equation_has_its_code_and_its_test() -> None:
    for entry in re.split(r"\n\n", PAGE):
        if entry.startswith("**("):
            assert "](../src/" in entry, entry
            assert "](../tests/" in entry, entry


def test_no_formula_runs_over_the_end_of_a_line() -> None:
    assert [line for line in PAGE.splitlines() if line.count("$") % 2] == []


def test_every_care_of_the_architecture_is_taken() -> None:
    listed = (ROOT / "docs" / "architecture.md").read_text().partition("## Where the paper's text needs care")[2]
    numbers = re.findall(r"^(\d+)\. ", listed.partition("\n## ")[0], flags=re.MULTILINE)
    assert len(numbers) >= 9
    assert set(re.findall(r"\*care (\d+)\*", PAGE)) == set(numbers)


@pytest.mark.parametrize(
    ("title", "line"),
    [("class Far", 8), ("class Far > return", 10), ("class Near > def score > return", 5), ("z / 2", 5)],
)
def test_a_title_names_a_line(title: str, line: int) -> None:
    assert paper.line_of(title, FILE.splitlines()) == line


@pytest.mark.parametrize(
    ("title", "message"),
    [
        ("def score", "is on 2 lines"),
        ("class Nowhere", "is on 0 lines"),
        ("class Near > z / 3", "names 'z / 3', which is not there"),
    ],
)
def test_a_title_that_names_no_line_is_refused(title: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        paper.line_of(title, FILE.splitlines())


def test_a_number_that_is_off_is_put_right_and_a_lost_line_is_told(tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text(FILE)
    filled = paper.filled
    assert filled('[`Far`](file.py#L3 "class Far > return").', tmp_path) == '[`Far`](file.py#L10 "class Far > return").'
    with pytest.raises(ValueError, match=r"a link to file\.py leads nowhere"):
        filled('[`Gone`](file.py#L "class Gone")', tmp_path)
