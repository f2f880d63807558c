"""The roles of columns (id, label, features, weight, split): named by the user, or found by their usual names."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beltrami.data.frame import frame_header, table_from_frame
from beltrami.data.table import DataTable
from beltrami.data.table_reader import read_header, read_table
from beltrami.errors import UnknownName


@dataclass(frozen=True)
class Roles:
    """The columns that the user names.

    Args:
        label: the label, several for several labels a node, ``()`` for none; None looks for a usual name.
        id: the ids of the nodes; None looks for a usual name.
        features: the columns to use as features; None uses all that have no other role.
        weight: the weights in the edge table; None looks for a usual name.
        split: the column that names the set (train, val, calibration, test) of each node.

    ``label`` and ``features`` take a name, several names separated by commas, or a sequence.
    """

    label: str | Sequence[str] | None = None
    id: str | None = None
    features: str | Sequence[str] | None = None
    weight: str | None = None
    split: str | None = None


def usual(names: Sequence[str], known: Sequence[str]) -> str | None:
    """Return the first of the ``known`` names (lower case) among ``names``, whatever the case; None if there is none.

    In Neo4j's headers a prefix and a group may surround the role, as in ``personId:ID(Person)``.
    """
    plain = {re.sub(r"^.*(:(id|start_id|end_id))(\(.*\))?$", r"\1", name.lower()): name for name in reversed(names)}
    return next((plain[name] for name in known if name in plain), None)


def named(given: str | Sequence[str], names: Sequence[str], *, kind: str = "column") -> tuple[str, ...]:
    """Return the columns (or the things of another ``kind``) that ``given`` names; refuse one that is unknown."""
    if isinstance(given, str):
        given = [given] if given in names else [part.strip() for part in given.split(",")]
    for name in given:
        if name not in names:
            raise UnknownName(kind, name, names)
    return tuple(given)


def source_name(source: Any, default: str) -> str:
    """Return the name of a table in messages: its file, or ``default`` for a frame."""
    if isinstance(source, DataTable):
        return source.source
    return source.name if isinstance(source, Path) else default


def source_header(source: Any, default: str) -> list[str]:
    """Return the names of the columns of a path, a frame or a table."""
    if isinstance(source, DataTable):
        return list(source.columns)
    return read_header(source) if isinstance(source, Path) else frame_header(source, source=default)


def load_table(
    source: Any,
    default: str,
    *,
    ids: Collection[str] = (),
    words: Collection[str] = (),
    only: Collection[str] | None = None,
) -> DataTable:
    """Read a path or a frame as ``read_table`` and ``table_from_frame`` do; a table is restricted to ``only``."""
    if isinstance(source, DataTable):
        kept = {name: column for name, column in source.columns.items() if only is None or name in only}
        return DataTable(kept, source.source, source.lines, source.unit)
    if isinstance(source, Path):
        return read_table(source, ids=ids, words=words, only=only)
    return table_from_frame(source, source=default, ids=ids, words=words, only=only)
