"""Random settings, valid and invalid, by the types of the configuration."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from typing import Any, Literal, get_args, get_origin

from hypothesis import strategies as st

from beltrami.config import RECIPES, RunConfig, check_settings, load_recipe, override
from beltrami.config.cost_check import check_cost, sizes_of
from beltrami.config.spec_graph import hints_of, kinds_of, specs_of
from beltrami.data import Dataset, load

INTEGERS = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 8, 17, 64, 1000, 10**6, 10**8, 2**31, 2**63, 10**30)
FLOATS = (-1e308, -1.0, -1e-9, 0.0, 1e-320, 1e-14, 1e-3, 0.1, 0.5, 0.999, 1.0, 1.5, 4.0, 64.0, 1e9, 1e308)
WORDS = (
    "nan",
    "inf",
    "-inf",
    "true",
    "false",
    "none",
    "null",
    "",
    " ",
    "x",
    "1e",
    "--",
    "a=b",
    "../x",
    "ü",
    "\x00",
    "x" * 500,
)


def check(recipe: str, dataset: str, settings: list[str]) -> None:
    """Refuse settings as ``train`` does before it computes; the cost is that on the digits, which need no download."""
    config = override(load_recipe(recipe, dataset), settings)
    check_settings(config)
    check_cost(config, sizes_of(config, digits()))


@cache
def digits() -> Dataset:
    return load("digits")


def typed_settings(hint: Any = RunConfig, *, prefix: str = "") -> dict[str, list[Any]]:
    """Return the types of every setting of all kinds by dotted name; of ``kind``, the names."""
    found: dict[str, list[Any]] = {}
    for spec in specs_of(hint):
        for name, inner in hints_of(spec).items():
            nested = (
                typed_settings(inner, prefix=f"{prefix}{name}.") if specs_of(inner) else {f"{prefix}{name}": [inner]}
            )
            for each, hints in nested.items():
                found.setdefault(each, []).extend(hint for hint in hints if hint not in found.get(each, []))
    for name in found:
        if name == f"{prefix}kind":
            found[name] = [*kinds_of(hint)]
    return found


SETTINGS = typed_settings()


def values(name: str) -> st.SearchStrategy[str]:
    """Return values for a setting, most of them of its type."""
    fitting: list[st.SearchStrategy[str]] = []
    hints = [
        each
        for hint in SETTINGS[name]
        for each in (get_args(hint) if get_origin(hint) not in (None, Literal) else [hint])
    ]
    for hint in hints:
        if isinstance(hint, str):
            fitting.append(st.just(hint))
        elif get_origin(hint) is Literal:
            fitting.append(st.sampled_from([str(word) for word in get_args(hint)]))
        elif hint is int:
            fitting += [st.sampled_from(INTEGERS).map(str), st.integers(-2, 200).map(str)]
        elif hint is float:
            fitting += [st.sampled_from(FLOATS).map(repr), st.floats(0, 10).map(repr)]
        elif hint is bool:
            fitting.append(st.sampled_from(("true", "false")))
    anything = st.one_of(
        st.sampled_from(WORDS),
        st.sampled_from(INTEGERS).map(str),
        st.sampled_from(FLOATS).map(repr),
        st.text(max_size=20),
    )
    return st.one_of(*fitting, *fitting, *fitting, anything) if fitting else anything


def applicable(tree: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the dotted names of the settings in a configuration."""
    return [
        name
        for key, value in tree.items()
        for name in (applicable(value, f"{prefix}{key}.") if isinstance(value, dict) else [f"{prefix}{key}"])
    ]


def assignment(config: RunConfig) -> st.SearchStrategy[str]:
    """Return ``name=value``, mostly of a setting that the configuration has, or seldom any text."""
    own = st.sampled_from(applicable(asdict(config)))
    names = st.one_of(own, own, own, own, st.sampled_from(sorted(SETTINGS)))
    typed = names.flatmap(lambda name: values(name).map(lambda value: f"{name}={value}"))
    return st.one_of(*(typed,) * 20, st.text(max_size=30))


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, str, list[str]]:
    """Return the name of a recipe, that of a dataset, and settings."""
    recipe, dataset = draw(st.sampled_from(sorted(RECIPES))), draw(st.sampled_from(("cora", "photo")))
    return recipe, dataset, draw(st.lists(assignment(load_recipe(recipe, dataset)), min_size=1, max_size=4))
