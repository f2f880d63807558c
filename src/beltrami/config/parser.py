"""The strict parser of configurations, results and records, and settings by their dotted names."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, asdict, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from beltrami import file_limits as limits
from beltrami.arguments import AnyPath, checked
from beltrami.config.convert import RENAMED, convert
from beltrami.config.run_kind import check_dataset_run
from beltrami.config.spec import SCHEMA, RunConfig
from beltrami.config.spec_graph import Spec, hints_of, kinds_of, ranges_of, specs_of
from beltrami.errors import DataError, UnknownName

T = TypeVar("T")
Config = TypeVar("Config", bound=Spec)
NOT_SETTINGS: Mapping[str, str] = {
    "dataset": "name the dataset as an argument of the command",
    "recipe": "choose it with `--recipe`",
    "tried": "it records how many configurations were compared",
    **dict.fromkeys(("data.kind", "data.name", "data.path", "data.digest"), "name the graph as an argument"),
}
LARGEST = 1e300  # the largest integer that is read as a floating-point number
Tree = dict[str, Any]


def parse(kind: type[T], values: Any) -> T:
    """Return the dataclass ``kind`` from nested mappings, as JSON gives them. An unknown name, a missing value or a
    value of another type is refused with its dotted name. The version in ``schema``, if any, must be today's."""
    if isinstance(values, Mapping):
        if values.get("schema", SCHEMA) != SCHEMA:
            raise ValueError(f"its schema is {values['schema']!r}, and this release reads schema {SCHEMA}")
        values = {name: value for name, value in values.items() if name != "schema"}
    found: T = _value(kind, values, "")
    return found


def read(kind: type[T], path: Path, *, what: str) -> T:
    """Return the dataclass ``kind`` from a file of a run, which may be of the first release."""
    try:
        values = json.loads(limits.read_json(path))
        if kind is RunConfig and isinstance(values, Mapping) and "schema" not in values:
            values = convert(values)
        return parse(kind, values)
    except FileNotFoundError:
        raise DataError(f"there is no {what} at {path}: is this the folder of a finished run?") from None
    except (OSError, ValueError, RecursionError, DataError) as error:
        raise DataError(f"the {what} {path} cannot be read ({error}): train the run again.") from None


@checked
def read_config(path: AnyPath) -> RunConfig:
    """Return the configuration in a file; that of a run on a graph folder is refused."""
    check_dataset_run(Path(path))
    return read(RunConfig, Path(path), what="configuration")


@checked
def override(config: Config, assignments: Sequence[str], *, skip_inapplicable: bool = False) -> Config:
    """Return the configuration with all ``dotted.name=value`` applied together, kinds first. Where a kind changes,
    fields of the same name keep their values, and other fields take their defaults; one without a default must be
    given. ``skip_inapplicable``: leave out settings that the chosen kinds do not have, instead of refusing them."""
    tree, changes = asdict(config), [_assignment(text) for text in assignments]  # type: ignore[call-overload]
    for path, value in sorted(changes, key=lambda change: len(change[0]) if change[0][-1] == "kind" else math.inf):
        try:
            _set(type(config), tree, path, value, (), type(config))
        except InapplicableSetting:
            if not skip_inapplicable:
                raise
    return parse(type(config), tree)


class InapplicableSetting(ValueError):
    """A setting that other kinds have and the chosen one does not."""


def setting_names(hint: Any = RunConfig, *, prefix: str = "") -> list[str]:
    """Return the dotted names of the settings of all kinds."""
    names: dict[str, None] = {}
    for kind in specs_of(hint):
        for name, inner in hints_of(kind).items():
            nested = setting_names(inner, prefix=f"{prefix}{name}.") if specs_of(inner) else [f"{prefix}{name}"]
            names |= dict.fromkeys(nested)
    return list(names)


def departures(config: RunConfig) -> dict[str, Any]:
    """Return every setting that is not its default, by dotted name; ``dataset``, ``recipe`` and ``tried`` apart."""
    return {name: value for name, value in _departures(config, None, "") if name not in NOT_SETTINGS}


def _departures(spec: Any, default: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for field in fields(spec):
        value, start = getattr(spec, field.name), field.default
        if field.name == "kind" or type(default) is type(spec):
            start = getattr(default, field.name, MISSING)
        if is_dataclass(value):
            yield from _departures(value, start, f"{prefix}{field.name}.")
        elif value != start:
            yield f"{prefix}{field.name}", value


def _assignment(text: str) -> tuple[tuple[str, ...], Any]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name:
        raise ValueError(f"`--set` takes name=value, such as scheme.time=4; got {text!r}.")
    if name in NOT_SETTINGS:
        raise ValueError(f"`{name}` is no setting: {NOT_SETTINGS[name]}.")
    path, words = tuple(name.split(".")), {"true": True, "false": False, "none": None, "null": None}
    return path, words[value.lower()] if value.lower() in words else _number(value)


def _number(text: str) -> int | float | str:
    """Return the number that a text says, or the text."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def _set(hint: Any, tree: Tree, path: tuple[str, ...], value: Any, above: tuple[str, ...], root: Any) -> None:
    """Set one value of a tree of the settings types in ``hint``, to which the names ``above`` lead from ``root``."""
    here, full, (name, *rest) = ".".join(above), ".".join((*above, *path)), path
    kinds = kinds_of(hint)
    if name == "kind" and kinds and not rest:
        chosen = _spec_of(hint, {"kind": value}, here)
        kept = {each: tree[each] for each in tree if each in hints_of(chosen)}
        changed = _defaults(chosen) | kept | {"kind": value or "none"}
        tree.clear()
        tree.update(changed)
        return
    inner = hints_of(_spec_of(hint, tree, here)).get(name)
    having = [kind for kind, each in kinds.items() if name in hints_of(each)]
    if inner is None and having:
        raise InapplicableSetting(
            f"`{full}` is a setting of `{here}.kind={' or '.join(having)}`, and here `{here}.kind={tree['kind']}`: "
            "leave it out, or set the kind too."
        )
    if inner is None or bool(rest) != bool(specs_of(inner)):
        raise _unknown(full, root)
    if rest:
        _set(inner, tree.setdefault(name, {}), tuple(rest), value, (*above, name), root)
    else:
        several = get_origin(inner) is tuple and not isinstance(value, list | tuple)  # such as times=0,1,2
        tree[name] = [_number(each) for each in str(value).split(",")] if several else value


def _unknown(name: str, root: Any) -> ValueError:
    """Return the error for an unknown setting: its name of today, or the nearest one and the others of its group."""
    if name in RENAMED:
        return ValueError(f"unknown setting {name!r}: it is called {RENAMED[name]!r} now.")
    names = [each for each in setting_names(root) if each not in NOT_SETTINGS]
    groups = {each.partition(".")[0] for each in names}
    near = [name] if name in groups else get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    group = (near[0] if near else name).partition(".")[0]
    same_group = [each for each in names if each.partition(".")[0] == group]
    return UnknownName("setting", name, same_group or groups)


def _defaults(kind: type[Spec]) -> Tree:
    known = {each.name: each.default for each in fields(kind) if each.default is not MISSING}  # type: ignore[arg-type]
    return {name: asdict(value) if isinstance(value, Spec) else value for name, value in known.items()}  # type: ignore[call-overload]


def _spec_of(hint: Any, values: Mapping[str, Any], where: str) -> Any:
    """Return the type of the settings ``values``, which their kind names if the types in ``hint`` have kinds."""
    kinds, name = kinds_of(hint), f"{where}.kind" if where else "kind"
    if not kinds:
        return hint
    if "kind" not in values:
        raise ValueError(f"`{name}` must be given: one of {', '.join(kinds)}.")
    kind = "none" if values["kind"] is None else values["kind"]
    if not isinstance(kind, str) or kind not in kinds:
        raise UnknownName(name, str(kind), kinds)
    return kinds[kind]


def _value(hint: Any, value: Any, where: str) -> Any:
    if hint is Any:
        return value
    if is_dataclass(hint) or specs_of(hint):
        return _dataclass(hint, value, where)
    if isinstance(hint, UnionType) or get_origin(hint) is Union:  # the latter for a Literal or null
        return _union(get_args(hint), value, where)
    origin = get_origin(hint)
    if origin is Literal and value not in get_args(hint):
        raise UnknownName(where, str(value), get_args(hint))
    if origin is Literal:
        return value
    if origin in (list, tuple) and isinstance(value, list | tuple):
        return origin(_value(get_args(hint)[0], each, f"{where}.{k}") for k, each in enumerate(value))
    if origin is not None and issubclass(origin, Mapping) and isinstance(value, Mapping):
        return {name: _value(get_args(hint)[1], each, f"{where}.{name}") for name, each in value.items()}
    if hint is str and type(value) is str and not value.isascii():
        _check_text(value, where)
    if hint is float and type(value) is int and abs(value) < LARGEST:
        return float(value)
    if type(value) is not hint or (hint is int and not -(2**63) <= value < 2**63):
        raise ValueError(f"`{where}` takes {_name(hint)}{' of 64 bits' if type(value) is hint else ''}; got {value!r}.")
    return value


def _check_text(value: str, where: str) -> None:
    """Refuse a text with half of a surrogate pair, which JSON can hold and files cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"`{where}` holds a character that is no text; got {value!r}.") from None


def _union(hints: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and NoneType in hints:
        return None
    others = [hint for hint in hints if hint is not NoneType]
    if len(others) == 1 and get_origin(others[0]) is not None:
        return _value(others[0], value, where)
    for hint in others:
        with suppress(ValueError):
            return _value(hint, value, where)
    raise ValueError(f"`{where}` takes {' or '.join(map(_name, hints))}; got {value!r}.")


def _dataclass(hint: Any, values: Any, where: str) -> Any:
    if not isinstance(values, Mapping):
        raise ValueError(f"`{where or 'the file'}` must be a group of names and values; got {values!r}.")
    kind, dot = _spec_of(hint, values, where), f"{where}." if where else ""
    hints = hints_of(kind)
    for name in values:
        if name not in hints:
            raise UnknownName("name", f"{dot}{name}", [f"{dot}{each}" for each in hints])
    for field in fields(kind):
        if field.name not in values and field.default is MISSING and field.default_factory is MISSING:
            of = f" for `{dot}kind={values['kind']}`" if "kind" in values else ""
            raise ValueError(f"`{dot}{field.name}` must be given{of}: it has no default.")
    found = {name: _value(hints[name], value, f"{dot}{name}") for name, value in values.items()}
    for name, needed in ranges_of(kind).items():
        if found.get(name) is not None and not needed.holds(found[name]):
            raise ValueError(f"`{dot}{name}` must be {needed.words}; got {found[name]!r}.")
    return kind(**found)


def _name(hint: Any) -> str:
    return "null" if hint is NoneType else getattr(hint, "__name__", str(hint))
