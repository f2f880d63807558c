"""The package opens quickly and holds what it promises."""

import subprocess
import sys
import time

import pytest

import beltrami


def python(code: str) -> str:
    command = [sys.executable, "-W", "ignore", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def seconds(code: str) -> float:
    """Of a fresh process, the best of two."""
    taken = []
    for _ in range(2):
        start = time.perf_counter()
        python(code)
        taken.append(time.perf_counter() - start)
    return min(taken)


@pytest.mark.parametrize("name", beltrami.__all__)
def test_every_name_resolves_to_a_documented_thing(name: str) -> None:
    found = getattr(beltrami, name)
    assert found is not None
    assert name == "__version__" or found.__doc__
    assert name == "__version__" or found.__name__ == name


def test_names_are_listed_once_and_shown_by_dir() -> None:
    assert len(beltrami.__all__) == len(set(beltrami.__all__))
    assert dir(beltrami) == sorted(beltrami.__all__)


def test_unknown_attribute_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'beltrami' has no attribute 'blend'"):
        beltrami.blend  # noqa: B018 - the access is the test


@pytest.mark.slow
def test_help_does_not_load_torch() -> None:
    code = """
import sys
import beltrami.cli
sys.argv = ["beltrami", "train", "--help"]
try:
    beltrami.cli.main()
except SystemExit as end:
    print("code", end.code, "heavy", sorted({"torch", "numpy", "scipy", "sklearn"} & set(sys.modules)))
"""
    assert python(code).splitlines()[-1] == "code 0 heavy []"


def test_import_loads_nothing_heavy() -> None:
    code = "import sys, beltrami; print(sorted({'torch', 'numpy', 'scipy', 'torch_geometric'} & set(sys.modules)))"
    assert python(code).strip() == "[]"


@pytest.mark.slow
def test_import_is_quicker_than_that_of_its_dependencies() -> None:
    yardstick = seconds("import torch, torch_geometric")
    assert seconds("import beltrami") < 0.5 * yardstick
    assert seconds("from beltrami import BLEND, fit, load, solve") < 1.5 * yardstick
