"""Check the arguments of public functions and constructors by their type hints, and convert what is safe to convert."""

from __future__ import annotations

import inspect
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import beltrami

C = TypeVar("C", bound=Callable[..., Any])


@dataclass(frozen=True)
class Range:
    """The values that an argument of a type may have, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]


Count: TypeAlias = Annotated[int, Range("at least 1 and below 2**31", lambda x: 1 <= x < 2**31)]
Natural: TypeAlias = Annotated[int, Range("at least 0 and below 2**31", lambda x: 0 <= x < 2**31)]
Seed: TypeAlias = Annotated[int, Range("from 0 to 2**32 - 1", lambda x: 0 <= x < 2**32)]
Finite: TypeAlias = Annotated[float, Range("finite", math.isfinite)]
Positive: TypeAlias = Annotated[float, Range("positive and finite", lambda x: 0 < x < math.inf)]
NotNegative: TypeAlias = Annotated[float, Range("at least 0 and finite", lambda x: 0 <= x < math.inf)]
DeviceName: TypeAlias = Annotated[
    str, Range("cpu, cuda or cuda:N", lambda x: re.fullmatch(r"cpu|cuda(:\d+)?", x) is not None)
]
AnyPath: TypeAlias = Annotated[str | os.PathLike[str], Range("not to be empty", lambda x: x != "")]
Name: TypeAlias = Annotated[
    str,
    Range(
        "at most 100 letters, digits, '-', '_' and '.', the first no '.'",
        lambda x: re.fullmatch(r"([\w-][\w.-]{0,99})?", x) is not None,
    ),
]  # it may become part of a path; empty where there is none
Fraction: TypeAlias = Annotated[float, Range("between 0 and 1", lambda x: 0 < x < 1)]
Part: TypeAlias = Annotated[float, Range("above 0 and at most 1", lambda x: 0 < x <= 1)]
Share: TypeAlias = Annotated[float, Range("at least 0 and below 1", lambda x: 0 <= x < 1)]

HOW_TO_MAKE = {
    "Edges": "build it with `Edges.build(edge_index, num_nodes=n)`",
    "Inputs": "make it with `model.prepare(x, edge_index, pos=pos)`",
    "Split": "make it with `make_split` or `Split(train, val, test, protocol, seed)`",
    "GraphTable": "read it with `read_graph`",
}
WORDS = {int: "a whole number", float: "a number", bool: "True or False", str: "a string", NoneType: "None"}


def as_name(text: str) -> str:
    """Return a text as a ``Name``: other characters become a hyphen."""
    return re.sub(r"[^\w.-]+", "-", text).lstrip(".")[:100]


def checked(what: C) -> C:
    """Check the arguments of a function or of the constructor of a class against their type hints.

    A value of another type, or outside the range of a hint such as ``Count``, is refused with a ``ValueError`` that
    names the argument, what is needed and what came. Arrays of numpy become tensors, and numbers of numpy those of
    Python. The error repeats the advice of a hint ``Annotated[..., "such as ..."]``. On a class it stands above
    ``@dataclass``. In code that ``torch.compile`` traces, nothing is checked."""
    if not isinstance(what, type):
        return _checked_function(what)
    constructor: Any = vars(what)["__init__"]
    what.__init__ = _checked_function(constructor)  # type: ignore[misc]
    return what


def _checked_function(function: C) -> C:
    @wraps(function)
    def with_checks(*args: Any, **kwargs: Any) -> Any:
        if "torch" in sys.modules and sys.modules["torch"].compiler.is_compiling():
            return function(*args, **kwargs)
        positional, named, rest = _hints(function)
        owner, first = _owner(function, args) if positional[:1] == (("self", Any),) else (function.__name__, 0)
        taken = list(args)
        for place in range(first, len(args)):
            name, hint = positional[place] if place < len(positional) else rest
            taken[place] = _converted(hint, args[place], name, owner, named)
        for name, value in kwargs.items():
            if name in named:
                kwargs[name] = _converted(named[name], value, name, owner, named)
        return function(*taken, **kwargs)

    return with_checks  # type: ignore[return-value]


def _owner(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[str, int]:
    """Return the name of a method for its errors, and the number of arguments to skip."""
    owner, name = type(args[0]).__name__, function.__name__
    return (owner if name in ("__init__", "__call__") else f"{owner}.{name}"), 1


@cache
def _hints(function: Callable[..., Any]) -> tuple[tuple[tuple[str, Any], ...], dict[str, Any], tuple[str, Any]]:
    """Return the positional arguments with their hints, all named ones, and the argument that takes all others."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:  # a name that its module imports for type checkers alone
        name = str(error.name)
        hints = get_type_hints(function, localns={name: getattr(beltrami, name)}, include_extras=True)
    positional, named, rest = [], {}, ("", Any)
    for each in inspect.signature(function).parameters.values():
        hint = hints.get(each.name, Any)
        if each.kind is each.VAR_POSITIONAL:
            rest = (each.name, hint)
            continue
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD):
            positional.append((each.name, hint))
        if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD):
            named[each.name] = hint
    return tuple(positional), named, rest


def _converted(hint: Any, value: Any, name: str, owner: str, named: Mapping[str, Any]) -> Any:
    """Return a value that fits the hint, or refuse it."""
    if _fits(hint, value):
        if value is not None and (needed := range_of(hint)) is not None and not needed.holds(value):
            raise ValueError(f"{owner} needs `{name}` {needed.words}; got {value!r}.")
        return getattr(value, "item", lambda: value)() if isinstance(value, Real) else value  # of numpy
    import numpy
    import torch

    if isinstance(value, numpy.bool_) and _fits(hint, bool(value)):
        return bool(value)
    if isinstance(value, numpy.ndarray) and _takes(hint, torch.Tensor):
        try:
            return torch.tensor(value)  # a copy: a later change of the array is not noticed
        except TypeError:
            raise ValueError(
                f"{owner} needs `{name}` as numbers that torch knows; got an array of {value.dtype}: convert it first."
            ) from None
    raise ValueError(
        f"{owner} needs `{name}` to be {_in_words(hint)}; got {_shown(value)}{_advice(hint, value, named)}."
    )


def _fits(hint: Any, value: Any) -> bool:
    """Return whether a value is of the type of a hint."""
    if hint is Any or isinstance(hint, TypeVar):
        return True
    if isinstance(hint, type) and hint not in (int, float, bool):
        return isinstance(value, hint)
    if hint is bool:
        return isinstance(value, bool)
    if hint is int or hint is float:
        kind = Integral if hint is int else Real
        return isinstance(value, kind) and not isinstance(value, bool)
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _fits(parts[0], value)
    if origin in (UnionType, Union):
        return any(_fits(part, value) for part in parts)
    if origin is Literal:
        return value in parts
    if origin is type:
        return isinstance(value, type)
    if not isinstance(value, origin) or (isinstance(value, str) and origin is not Callable):
        return False
    if origin is tuple and parts[1:] != (...,):
        return len(value) == len(parts) and all(map(_fits, parts, value))
    return not issubclass(origin, Sequence) or all(_fits(parts[0], each) for each in value)


def _parts(hint: Any) -> Iterator[Any]:
    """Yield the types that a hint allows."""
    if get_origin(hint) is Annotated:
        yield from _parts(get_args(hint)[0])
    elif get_origin(hint) in (UnionType, Union):
        for part in get_args(hint):
            yield from _parts(part)
    else:
        yield hint


@cache
def range_of(hint: Any) -> Range | None:
    """Return the range of a hint, if it has one."""
    if get_origin(hint) is Annotated and isinstance(get_args(hint)[1], Range):
        found: Range = get_args(hint)[1]
        return found
    parts = get_args(hint) if get_origin(hint) in (UnionType, Union) else ()
    return next(filter(None, map(range_of, parts)), None)


def _takes(hint: Any, kind: type) -> bool:
    return any(part is kind for part in _parts(hint))


def _in_words(hint: Any) -> str:
    return " or ".join(map(_word, _parts(hint)))


def _word(hint: Any) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if hint in WORDS:
        return WORDS[hint]
    if origin is Literal:
        return f"one of {', '.join(map(repr, parts))}"
    if origin is type:
        return "a class"
    if origin is not None and issubclass(origin, Sequence):
        return f"a sequence, each {_in_words(parts[0])}"
    if origin is not None:
        return "a function" if origin is Callable else f"a {origin.__name__}"
    of_torch = hint.__module__.partition(".")[0] == "torch"
    return f"a torch.{hint.__name__}" if of_torch else _with_article(hint.__name__)


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOaeio' or name == 'ndarray' else 'a'} {name}"


def _shown(value: Any) -> str:
    """Return a value, or its kind where it is long, for an error."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(shape := getattr(value, "shape", None), tuple):
        return f"{_with_article(type(value).__name__)} of shape {tuple(shape)}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 and " object at 0x" not in text else _with_article(type(value).__name__)


def _advice(hint: Any, value: Any, named: Mapping[str, Any]) -> str:
    """Return what to do about a value that does not fit, as the end of a sentence."""
    classes = [part for part in _parts(hint) if isinstance(part, type)]
    if isinstance(value, type) and issubclass(value, tuple(classes)):
        return f": pass an object, such as `{value.__name__}(...)`"
    if get_origin(hint) is Annotated and isinstance(get_args(hint)[1], str):
        return f", {get_args(hint)[1]}"
    for each in classes:
        if each.__name__ in HOW_TO_MAKE:
            return f": {HOW_TO_MAKE[each.__name__]}"
    if isinstance(value, (list, tuple)) and any(each.__name__ == "Tensor" for each in classes):
        return ": make it a tensor with `torch.tensor`"
    if value is not None and not isinstance(value, (str, int, float, list, tuple, dict)):
        for name, other in named.items():
            if any(part not in (Any, object) and _fits(part, value) for part in _parts(other)):
                return f": it fits `{name}`, so check the order of the arguments"
    return ""
