"""The tiers of docs/architecture.md hold: imports go downwards only, and files stay short."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "beltrami"
TIERS = (
    {"arguments"},
    {"joint", "errors", "memory"},
    {"graph", "geometry", "file_limits"},
    {"diffusivity", "stencil", "position", "scheme"},
    {"flow", "energy", "transforms"},
    {"model", "image", "data"},
    {"scale"},
    {"train", "external"},
    {"distributed"},
    {"config"},
    {"precompute", "precompute_folder", "result", "run_folder"},
    {"run", "node_predictions"},
    {"rows", "run_streamed"},
    {"planner"},
    {"predict"},
    {"auto"},
    {"estimator_input"},
    {"estimator"},
    {"lab"},
    {"report"},
    {"cli"},
)
TIER = {package: tier for tier, packages in enumerate(TIERS) for package in packages}
FILES = sorted(SOURCE.rglob("*.py"))
LABORATORY = {"lab", "report", "cli"}
FORBIDDEN_NAMES = {"utils", "helpers", "common", "misc", "base_classes"}


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imported_packages(path: Path) -> list[tuple[int, str]]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "beltrami" and len(parts) > 1 and parts[1] in TIER:
                found.append((node.lineno, parts[1]))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_downwards_only(path: Path) -> None:
    package = package_of(path)
    if package in ("__init__", "__main__"):
        return
    assert package in TIER, f"{path} is in no tier of the architecture"
    for line, other in imported_packages(path):
        if other != package:
            assert TIER[other] < TIER[package], f"{path}:{line}: {package} may not import {other}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_stay_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 250
    assert path.stem not in FORBIDDEN_NAMES


def test_the_library_does_not_import_the_laboratory() -> None:
    first = min(TIER[package] for package in LABORATORY)
    assert all(TIER[package] < first for package in TIER if package not in LABORATORY)


def test_offending_import_is_found(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("from beltrami.model import blend\nimport beltrami.train.loop\n")
    assert imported_packages(bad) == [(1, "model"), (2, "train")]
