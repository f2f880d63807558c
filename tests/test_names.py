"""Names have one meaning: modules and public classes are unique, no function hides a module, retired words are gone."""

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "beltrami"
FILES = sorted(SOURCE.rglob("*.py"))
PACKAGES = sorted(path.parent for path in SOURCE.rglob("__init__.py"))
SHARED = {
    "base",  # the abstract classes of a package
    "blend",  # the model, and its recipe
    "baseline",  # the networks, and their recipes
    "zoo",  # the networks of Table 1, their recipes, and the command that lists them
    "study",  # the package, and its command
    "tune",
    "bench",
}
RETIRED = {
    *("autopilot", "helm", "embark", "sail", "afloat", "lookout", "march", "tally", "rehearsal", "unseen", "downhill"),
    *("frontier", "pieces", "scheduled", "angle", "likeness", "beside", "crew", "adopt", "glance", "horizon", "pose"),
    *("judge", "pin", "effort", "span", "rival", "competitor", "fleet", "pile", "ledger", "conduct", "borrow", "clerk"),
    *("lockstep", "yardstick", "sliver", "knock", "hush"),
}
"""Words of the first release that a reader had to guess; identifiers and module names may not contain them."""


def identifiers(path: Path) -> list[tuple[int, str]]:
    """Return the names that a file defines, with their lines."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.append((node.lineno, node.name))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.append((node.lineno, node.id))
        elif isinstance(node, ast.arg):
            found.append((node.lineno, node.arg))
    return found


def words(name: str) -> set[str]:
    """Return the words of an identifier in lower case: ``DeviceLoop`` and ``device_loop`` have two."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def modules() -> dict[str, list[str]]:
    """Return the places of every module and package name."""
    places = defaultdict(list)
    for path in FILES:
        name = path.parent.name if path.name == "__init__.py" else path.stem
        if name not in ("beltrami", "__main__"):
            places[name].append(str(path.relative_to(SOURCE)))
    return places


def test_no_two_modules_share_a_name() -> None:
    doubled = {name: places for name, places in modules().items() if len(places) > 1 and name not in SHARED}
    assert not doubled


def test_no_two_public_classes_share_a_name() -> None:
    names = Counter(
        node.name
        for path in FILES
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_no_export_hides_a_module(package: Path) -> None:
    inside = {path.stem for path in package.glob("*.py")} | {path.parent.name for path in package.glob("*/__init__.py")}
    exported = {
        alias.asname or alias.name
        for node in ast.walk(ast.parse((package / "__init__.py").read_text()))
        if isinstance(node, ast.ImportFrom) and node.module != f"beltrami.{'.'.join(package.relative_to(SOURCE).parts)}"
        for alias in node.names
    }
    assert not exported & inside


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_retired_word_is_used(path: Path) -> None:
    assert not words(path.stem) & RETIRED
    assert [(line, name) for line, name in identifiers(path) if words(name) & RETIRED] == []


def test_a_retired_word_is_found(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("class DeviceHelm:\n    def run(self, horizon): ...\n")
    assert [(line, words(name) & RETIRED) for line, name in identifiers(bad) if words(name) & RETIRED] == [
        (1, {"helm"}),
        (2, {"horizon"}),
    ]
