"""Read tables of nodes: ids, features, labels and split."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from beltrami.data.graph_table import DropLog
from beltrami.data.roles import Roles, load_table, named, source_header, source_name, usual
from beltrami.data.table import UNNAMED, Column, DataTable, WordCodes, Words, as_numbers, as_words, sort_names
from beltrami.errors import DataError

IDS = ("id", "node_id", "node", ":id", "~id", "name")
LABELS = ("label", "class", "y", "target")


@dataclass(frozen=True, eq=False)
class NodeRows:
    """The nodes of a table: ids, features and labels in one order, and the columns that were taken for each role."""

    ids: list[str]
    columns: dict[str, Column]
    labels: dict[str, Column]
    split: Words | None
    roles: dict[str, str]


@dataclass(frozen=True)
class ColumnPlan:
    """The columns to read: the id (``sure`` if it is named or has a usual name), labels, split and features."""

    id: str | None
    sure: bool
    label: tuple[str, ...]
    split: str | None
    features: tuple[str, ...] | None

    @property
    def words(self) -> list[str]:
        return [*self.label, *([self.split] if self.split else [])]

    @property
    def only(self) -> list[str] | None:
        return None if self.features is None else [*self.features, *self.words, *([self.id] if self.id else [])]


def read_nodes(nodes: Any, used: Sequence[str] | None, roles: Roles, log: DropLog) -> NodeRows:
    """Read a table of nodes: a path, a frame or a table.

    The ids are in the column that ``roles`` names or that has a usual name; else in the first column, if its values are
    distinct and the edges use them (``used``) or, without edges, are words; else they are the row numbers from 0.
    Rows with an empty id are dropped; a repeated id is refused.
    """
    plan = plan_columns(source_header(nodes, "nodes"), roles)
    place = source_name(nodes, "nodes")
    table = load_table(nodes, place, ids=[plan.id] if plan.id else [], words=plan.words, only=plan.only)
    ids = table.columns.get(plan.id) if plan.id else None
    if ids is not None and not plan.sure and not _identifies(ids, used, index=plan.id == UNNAMED):
        table.columns[plan.id or ""] = _as_feature(ids)
        ids = None
    found = {"id": plan.id if ids is not None else None, "label": ", ".join(plan.label), "split": plan.split}
    if ids is None:
        ids = Words(np.arange(len(table)), [str(k) for k in range(len(table))])
    table, words = _with_distinct_ids(table, ids, plan.id or "", log)
    labels = {name: as_words(table.columns[name]) for name in plan.label}
    split = as_words(table.columns[plan.split]) if plan.split else None
    if split is not None and not isinstance(split, Words):
        raise DataError(f"{place}: the split column {plan.split!r} must hold words such as train, val and test.")
    features = plan.features
    chosen = {*(table.columns if features is None else features)}
    if features is None:
        chosen -= {*plan.words, found["id"], UNNAMED}
    return NodeRows(
        [words.names[code] for code in words.codes],
        {name: table.columns[name] for name in table.columns if name in chosen},
        {name: sort_names(label) if isinstance(label, Words) else label for name, label in labels.items()},
        split,
        {role: name for role, name in found.items() if name},
    )


def plan_columns(names: list[str], roles: Roles) -> ColumnPlan:
    """Return the roles of the columns of a table of nodes."""
    label = named(roles.label, names) if roles.label is not None else ()
    split = named((roles.split,), names)[0] if roles.split else None
    features = None if roles.features is None else named(roles.features, names)
    taken = {*label, split, *(features or ())}
    if roles.label is None:
        guess = usual([name for name in names if name not in taken and name != roles.id], LABELS)
        label = (guess,) if guess else ()
        taken |= {*label}
    free = [name for name in names if name not in taken]
    chosen = named((roles.id,), names)[0] if roles.id else usual(free, IDS)
    given = Counter(name for name in (*label, split, chosen, *(features or ())) if name)
    if max(given.values(), default=1) > 1:
        raise ValueError(
            f"the column {given.most_common(1)[0][0]!r} is named twice among id, label, split and features: a column "
            "has one role."
        )
    first = UNNAMED if UNNAMED in free else names[0] if names[0] in free else None
    return ColumnPlan(chosen or first, chosen is not None, label, split, features)


def _identifies(ids: Column, used: Sequence[str] | None, *, index: bool) -> bool:
    """Whether a column without a usual name holds the ids: distinct, and used by at least half the ends of edges."""
    if not isinstance(ids, Words) or len(ids.names) < len(ids) or bool((ids.codes < 0).any()):
        return False
    if not used:
        return index or as_numbers(ids) is None
    known = set(ids.names)
    return 2 * sum(name in known for name in used) >= len(used)


def _with_distinct_ids(table: DataTable, ids: Column, name: str, log: DropLog) -> tuple[DataTable, Words]:
    if not isinstance(ids, Words):
        raise DataError(f"{table.source}: the ids in {name!r} must be words or integers: name another column as `id`.")
    log.drop(table, np.flatnonzero(ids.codes < 0), "rows without an id dropped", lambda _: "no id")
    kept = np.flatnonzero(ids.codes >= 0)
    table, ids = table.take(kept), ids.take(kept)
    order = np.argsort(ids.codes, kind="stable")
    repeated = np.flatnonzero(np.diff(ids.codes[order]) == 0)
    if len(repeated):
        first, second = order[repeated[0]], order[repeated[0] + 1]
        raise DataError(
            f"{table.where(int(second))}: the id {ids.names[ids.codes[second]]!r} in column {name!r} is already on "
            f"{table.unit} {table.lines[first]}: remove one of the two, or name another column as `id`."
        )
    return table, ids


def _as_feature(column: Column) -> Column:
    """Return a column that was read as ids as any other column is read: numbers, or words with missing values."""
    if not isinstance(column, Words):
        return column
    encoder = WordCodes()
    codes = encoder.encode(column.names)
    words = Words(np.append(codes, -1)[column.codes], encoder.names)
    return as_numbers(words) or words
