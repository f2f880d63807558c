"""Tables of nodes as arrays, read in chunks: ids, features, classes and roles."""

import csv
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import numpy as np

from beltrami.data.array_file import Array, new_array
from beltrami.data.graph_folder import TEST, TRAIN, UNUSED, VAL
from beltrami.data.graph_table import DropLog
from beltrami.data.labelled_split import SETS
from beltrami.data.node_reader import IDS, plan_columns
from beltrami.data.roles import Roles
from beltrami.data.table import UNNAMED, Column, DataTable, Numbers, WordCodes, Words, as_words, floats, sort_names
from beltrami.data.table_reader import read_header, table_chunks
from beltrami.errors import DataError
from beltrami.external.id_table import IdRange

CLASSES = 2**16  # of a label column
ROLES = {"train": TRAIN, "val": VAL, "test": TEST}


class NodeTable:
    """A table of nodes that is read in two passes: :meth:`check` reads it once, :meth:`write` once more.

    The id must be named or have a usual name. Rows with an empty id are dropped, as in ``read_graph``. Features are
    numbers and are written as they are, in single precision; a column of words and a missing value are refused.
    """

    def __init__(self, path: Path, roles: Roles, log: DropLog) -> None:
        self.path, self.log = path, log
        header = read_header(path)
        self.plan = plan_columns(header, roles)
        if self.plan.id is None or not self.plan.sure:
            usual = ", ".join(IDS)
            raise DataError(f"{path.name} has no column with a usual name of ids ({usual}): name it with `--id`.")
        if len(self.plan.label) > 1:
            count = len(self.plan.label)
            raise DataError(f"a graph folder has one class for each node: name one column as label; got {count}.")
        taken = {self.plan.id, *self.plan.words, UNNAMED}
        chosen = self.plan.features
        self.features = [name for name in header if (name not in taken if chosen is None else name in chosen)]
        self.ids, self.classes = IdRange(), list[str]()

    def check(self) -> None:
        """Read the table once: count the nodes, collect the classes, and refuse invalid values."""
        classes = WordCodes()
        for table in self._chunks(self.log):
            self.ids.add(_texts(table.columns[self.plan.id or ""]))
            for name in self.features:
                _numbers(table, name)
            for name in self.plan.label:
                label = self._label(table, name)
                classes.encode([label.names[code] for code in np.unique(label.codes[label.codes >= 0])])
                if len(classes.names) > CLASSES:
                    many = f"the label {name!r} has over {CLASSES} values"
                    raise DataError(f"{self.path.name}: {many}, and a graph folder has classes: name another column.")
        if not self.ids.count:
            raise DataError(f"{self.path.name} has no nodes: at least one row with an id is needed.")
        self.classes = sort_names(Words(np.arange(len(classes.names)), classes.names)).names

    def write(self, folder: Path) -> Iterator[list[str]]:
        """Write the arrays to a folder, and ids.csv with the id of each node; yield the ids of each chunk."""
        n, code = self.ids.count, {name: k for k, name in enumerate(self.classes)}
        with ExitStack() as stack:
            x, y, role = (
                stack.enter_context(new_array(folder / f"{name}.npy", shape=shape, dtype=dtype)) if wanted else None
                for name, shape, dtype, wanted in (
                    ("x", (n, len(self.features)), np.float32, self.features),
                    ("y", (n,), np.int64, self.plan.label),
                    ("role", (n,), np.uint8, self.plan.split),
                )
            )
            file = stack.enter_context((folder / "ids.csv").open("w", encoding="utf-8", newline=""))
            file.write("id\n")
            row = 0
            for table in self._chunks(DropLog()):
                part = slice(row, row + len(table))
                ids = _texts(table.columns[self.plan.id or ""])
                write_ids(file, ids)
                if x is not None:
                    x[part] = np.stack([_numbers(table, name) for name in self.features], axis=1)
                if y is not None:
                    label = self._label(table, self.plan.label[0])
                    y[part] = np.array([*(code.get(name, -1) for name in label.names), -1])[label.codes]
                if role is not None:
                    role[part] = self._roles(table)
                row += len(table)
                yield ids

    def _chunks(self, log: DropLog) -> Iterator[DataTable]:
        """Yield the rows that have an id."""
        name = self.plan.id or ""
        only = [name, *self.plan.words, *self.features]
        for table in table_chunks(self.path, ids=[name], words=self.plan.words, only=only):
            ids = table.columns[name]
            if not isinstance(ids, Words):
                raise DataError(f"{table.source}: the ids in {name!r} must be words or integers: name another as `id`.")
            log.drop(table, np.flatnonzero(ids.codes < 0), "rows without an id dropped", lambda _: "no id")
            yield table.take(np.flatnonzero(ids.codes >= 0))

    def _label(self, table: DataTable, name: str) -> Words:
        label = as_words(table.columns[name])
        if not isinstance(label, Words):
            raise DataError(f"{table.source}: the label {name!r} holds fractions, and a graph folder has classes.")
        return label

    def _roles(self, table: DataTable) -> Array:
        words = as_words(table.columns[self.plan.split or ""])
        if not isinstance(words, Words):
            raise DataError(f"{table.source}: the split column {self.plan.split!r} must hold words such as train.")
        sets = [SETS.get(name.lower(), "") for name in words.names]
        if "calibration" in sets:
            raise DataError(f"{table.source}: a graph folder has no calibration nodes; rename them to val or test.")
        return np.array([*(ROLES.get(each, UNUSED) for each in sets), UNUSED], dtype=np.uint8)[words.codes]


def _texts(column: Column) -> list[str]:
    assert isinstance(column, Words)
    return [column.names[code] for code in column.codes]


def _numbers(table: DataTable, name: str) -> Array:
    """Return a column of features; words and values that are missing or infinite are refused."""
    column = table.columns[name]
    if not isinstance(column, Numbers):
        text = next((word for word in column.names if floats([word]) is None), "")
        remedy = "make numbers of it, or choose the columns with `--features`"
        raise DataError(f"{table.source}: the column {name!r} holds words such as {text!r}: {remedy}.")
    wrong = np.flatnonzero(~np.isfinite(column.values.astype(np.float32)))
    if len(wrong):
        raise DataError(
            f"{table.where(int(wrong[0]))}: the value of {name!r} is missing or not finite: fill it in, or choose the "
            "columns with `--features`."
        )
    return column.values


def write_ids(file: IO[str], ids: list[str]) -> None:
    """Write ids to a CSV file, one on each line."""
    csv.writer(file, lineterminator="\n").writerows([name] for name in ids)
