"""The public names of beltrami and the page of the API reference that describes each, read from the sources."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
API = ROOT / "docs" / "api"


def documented_modules() -> dict[str, str]:
    """Return the modules that the pages under docs/api describe (``::: beltrami.flow``), with the page of each."""
    return {
        line.split()[1]: page.stem
        for page in sorted(API.glob("*.md"))
        for line in page.read_text().splitlines()
        if line.startswith("::: ")
    }


def public_names(module: str) -> list[str]:
    """Return the names in ``__all__`` of a module, or its public classes and functions if it has no ``__all__``."""
    path = (ROOT / "src").joinpath(*module.split("."))
    tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
    listed = [
        name.value
        for node in tree.body
        if "__all__" in ast.unparse(node).split("=")[0]
        for name in ast.walk(node)
        if isinstance(name, ast.Constant) and isinstance(name.value, str)
    ]
    defined = [node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    return listed or [name for name in defined if not name.startswith("_")]


def identifiers() -> dict[str, str]:
    """Return the full name under which the API reference has each public name: ``Cosine`` -> ``beltrami....Cosine``."""
    return {name: f"{module}.{name}" for module in documented_modules() for name in public_names(module)}
