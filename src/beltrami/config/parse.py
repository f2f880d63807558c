"""Settings: reading and altering a configuration by names, strictly."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_type_hints

from beltrami.config.spec import RunConfig
from beltrami.errors import DataError, UnknownName

T = TypeVar("T")


def parse(kind: type[T], values: Any, *, where: str = "") -> T:
    """A dataclass from nested mappings; an unknown name or a value of the wrong type is refused where it stands."""
    if not isinstance(values, Mapping):
        raise ValueError(f"setting {where or 'configuration'!r} must be a group of settings; got {values!r}.")
    hints = get_type_hints(kind)
    given = {}
    for name, value in values.items():
        path = f"{where}.{name}" if where else str(name)
        if name not in hints:
            raise UnknownName("setting", path, [f"{where}.{known}" if where else known for known in hints])
        given[name] = (
            parse(hints[name], value, where=path) if is_dataclass(hints[name]) else _typed(hints[name], value, path)
        )
    return kind(**given)


def override(config: RunConfig, assignments: Sequence[str]) -> RunConfig:
    """The configuration with each ``dotted.name=value`` applied in turn."""
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or not name:
            raise ValueError(f"`--set` takes name=value, such as scheme.time=4; got {assignment!r}.")
        config = _replace(config, name.strip().split("."), text.strip(), name.strip())
    return config


def setting_names(kind: Any = RunConfig, *, prefix: str = "") -> list[str]:
    """The dotted names of all settings."""
    names = []
    for name, hint in get_type_hints(kind).items():
        names += setting_names(hint, prefix=f"{prefix}{name}.") if is_dataclass(hint) else [f"{prefix}{name}"]
    return names


def read_config(path: Path) -> RunConfig:
    """Read a configuration file; a :class:`DataError` says what is wrong with it."""
    try:
        return parse(RunConfig, json.loads(path.read_text()))
    except FileNotFoundError:
        raise DataError(f"no configuration at {path}: is this the folder of a run?") from None
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"the configuration {path} cannot be read ({error}): train the run again.") from None


def _replace(group: T, path: list[str], text: str, full: str) -> T:
    name, *rest = path
    hints = get_type_hints(type(group))
    if name not in hints or bool(rest) != is_dataclass(hints[name]):
        raise UnknownName("setting", full, setting_names())
    value = _replace(getattr(group, name), rest, text, full) if rest else _typed(hints[name], _literal(text), full)
    return replace(group, **{name: value})  # type: ignore[type-var]


def _literal(text: str) -> Any:
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _typed(hint: Any, value: Any, where: str) -> Any:
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    if float in kinds and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if any(type(value) is kind for kind in kinds):
        return value
    if str in kinds and value is None and NoneType not in kinds:
        return "none"  # `none` is also the name of a choice
    wanted = " or ".join("null" if kind is NoneType else kind.__name__ for kind in kinds)
    raise ValueError(f"setting {where!r} takes {wanted}; got {value!r}.")
