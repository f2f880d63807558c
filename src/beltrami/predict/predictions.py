"""Predictions as a table, one row per node in the order of the ids, and their files.

Columns: ``id``; ``prediction``; for classes ``probability``, that of the predicted class; ``p_<name>``, the probability
of each class or label; ``set``, the conformal set, and ``set_size``; for numbers ``lower`` and ``upper``, the ends of
the interval; ``reached``, whether a label reaches the node.

- Columns of sets, intervals and ``reached`` are present if the caller gave them.
- Several names in one field are joined by ``;``, in the order of the classes. A name that contains ``;``, a quotation
  mark or a line break is quoted as in a CSV file: :func:`split_names`, or any CSV reader with the delimiter ``;``,
  splits the field. No names give an empty field.
- ``p_`` begins no other column, so that a class of any name has a column of its own; repeated names are refused.
- Where no label reaches a node, the prediction is ``no label reaches this node``, for numbers empty; the probabilities,
  the set and the interval are empty, and the size of the set is 0.
- In CSV and TSV files an empty field is a missing value; in Parquet files missing numbers are null.
"""

import csv
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor

from beltrami.arguments import AnyPath, checked
from beltrami.data.file import atomic_file
from beltrami.graph import Edges
from beltrami.graph.statistics import component_of
from beltrami.predict.conformal import Guarantee
from beltrami.predict.table_file import Array, Values, check_table_path, to_lines, write_table

NO_LABEL = "no label reaches this node"
"""The prediction at a node without a label in its connected component."""

CHUNK = 65_536  # rows that exist as Python objects at a time


@dataclass(frozen=True, eq=False, kw_only=True)
class Predictions(ABC):
    """Predictions at the nodes ``ids``: :class:`ClassPredictions` or :class:`NumberPredictions`.

    Args:
        ids: the user's name of each node.
        reached: mask (n,) of the nodes in whose connected component there is a label, see :func:`label_reaches`; None
            if that does not matter, as for a model that predicts from features alone.
        guarantee: what the sets or intervals promise.
        notes: sentences for the reader of the file, such as a warning that new nodes have no guarantee.
    """

    ids: Sequence[str]
    reached: Tensor | None = None
    guarantee: Guarantee | None = None
    notes: Sequence[str] = ()

    @abstractmethod
    def columns(self, start: int = 0, stop: int | None = None) -> dict[str, Values]:
        """Return the columns of the rows from ``start`` to ``stop``; a dictionary that pandas or polars accept."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return what the file beside the table says of this kind of predictions."""

    @checked
    def write(self, path: AnyPath) -> None:
        """Write the table to a .csv, .tsv or .parquet file, and beside it what is known of it to a .json file.

        The JSON file has the same stem. A failure while writing leaves both files as they were.
        """
        path = Path(path)
        check_table_path(path)
        with atomic_file(path.with_suffix(".json")) as facts:
            facts.write(self.to_json().encode())
            write_table(path, self.chunks())

    def to_json(self) -> str:
        """Return the content of the file beside the table."""
        facts = {"rows": len(self.ids), **self.facts()}
        if self.reached is not None:
            facts["not_reached"] = int((~self.reached).sum())
        facts["coverage"] = None if self.guarantee is None else asdict(self.guarantee)
        return json.dumps({**facts, "notes": list(self.notes)}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def chunks(self) -> Iterator[dict[str, Values]]:
        """Yield the columns of ``CHUNK`` rows at a time, at least once."""
        for start in range(0, max(len(self.ids), 1), CHUNK):
            yield self.columns(start, start + CHUNK)


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassPredictions(Predictions):
    """Probabilities of classes or labels, with conformal sets.

    Args:
        names: the name of each class or label.
        probabilities: (n, classes), calibrated.
        exclusive: whether a node has exactly one class, the most likely one; else it has the labels that are more
            likely present than absent.
        sets: mask (n, classes) of the classes in each node's conformal set.
        temperature: the temperature behind the probabilities.
    """

    names: Sequence[str]
    probabilities: Tensor
    exclusive: bool = True
    sets: Tensor | None = None
    temperature: float | None = None

    def __post_init__(self) -> None:
        shape = (len(self.ids), len(self.names))
        _check(self.probabilities, shape, "probabilities")
        _check(self.sets, shape, "sets")
        _check(self.reached, shape[:1], "reached")
        repeated = {name for name in self.names if self.names.count(name) > 1}
        if repeated:
            raise ValueError(f"the class name {min(repeated)!r} is repeated: give every class a name of its own.")

    def columns(self, start: int = 0, stop: int | None = None) -> dict[str, Values]:
        rows = slice(start, stop)
        p, missing = _array(self.probabilities[rows]), _missing(self.reached, rows)
        columns: dict[str, Values] = {"id": list(self.ids[rows])}
        if self.exclusive:
            predicted = p.argmax(1)
            columns["prediction"] = _fill([self.names[c] for c in predicted], missing)
            columns["probability"] = _fill_nan(p[numpy.arange(len(p)), predicted], missing)
        else:
            columns["prediction"] = _fill(_joined(p > 0.5, self.names), missing)
        columns |= {f"p_{name}": _fill_nan(p[:, c], missing) for c, name in enumerate(self.names)}
        if self.sets is not None:
            sets = _array(self.sets[rows]) & (True if missing is None else ~missing[:, None])
            columns |= {"set": _joined(sets, self.names), "set_size": sets.sum(1)}
        return columns if missing is None else {**columns, "reached": ~missing}

    def facts(self) -> dict[str, Any]:
        task = "classification" if self.exclusive else "multi-label"
        return {"task": task, "classes": list(self.names), "temperature": self.temperature}


@dataclass(frozen=True, eq=False, kw_only=True)
class NumberPredictions(Predictions):
    """Predicted numbers (n,), with the lower and upper ends of their intervals, (n,) each, or None."""

    values: Tensor
    interval: tuple[Tensor, Tensor] | None = None

    def __post_init__(self) -> None:
        for name, each in (("values", self.values), ("reached", self.reached)):
            _check(each, (len(self.ids),), name)
        for each in self.interval or ():
            _check(each, (len(self.ids),), "interval")

    def columns(self, start: int = 0, stop: int | None = None) -> dict[str, Values]:
        rows, numbers = slice(start, stop), {"prediction": self.values}
        if self.interval is not None:
            numbers |= dict(zip(("lower", "upper"), self.interval, strict=True))
        missing = _missing(self.reached, rows)
        columns: dict[str, Values] = {"id": list(self.ids[rows])}
        columns |= {name: _fill_nan(_array(each[rows]), missing) for name, each in numbers.items()}
        return columns if missing is None else {**columns, "reached": ~missing}

    def facts(self) -> dict[str, Any]:
        return {"task": "regression"}


@checked
def label_reaches(edges: Edges, labelled: Tensor) -> Tensor:
    """Return whether the connected component of each node has a labelled node, from and to a mask (n,)."""
    if labelled.dtype != torch.bool or labelled.shape != (edges.num_nodes,) or labelled.layout != torch.strided:
        found = f"{labelled.dtype} of shape {tuple(labelled.shape)}"
        raise ValueError(f"`labelled` must be a boolean mask ({edges.num_nodes},); got {found}.")
    component = component_of(edges)
    return torch.isin(component, component[labelled])


def join_names(names: Sequence[str]) -> str:
    """Return names as one field, joined by ``;`` and quoted where needed."""
    return to_lines([names], delimiter=";")[0]


def split_names(field: str) -> list[str]:
    """Return the names that :func:`join_names` joined."""
    return next(csv.reader(io.StringIO(field, newline=""), delimiter=";"), [])


def _joined(mask: Array, names: Sequence[str]) -> list[str]:
    """Return the names that each row of a mask chooses, joined; every distinct row is joined once."""
    known: dict[bytes, str] = {}
    keys = [row.tobytes() for row in numpy.packbits(mask, axis=1)]
    for key, row in zip(keys, mask, strict=True):
        if key not in known:
            known[key] = join_names([names[c] for c in row.nonzero()[0]])
    return [known[key] for key in keys]


def _array(values: Tensor) -> Array:
    array: Array = values.detach().cpu().numpy()
    return array


def _missing(reached: Tensor | None, rows: slice) -> Array | None:
    return None if reached is None else ~_array(reached[rows])


def _fill(texts: list[str], missing: Array | None) -> list[str]:
    if missing is None:
        return texts
    return [NO_LABEL if gone else text for gone, text in zip(missing, texts, strict=True)]


def _fill_nan(values: Array, missing: Array | None) -> Array:
    return values if missing is None else numpy.where(missing, numpy.nan, values).astype(values.dtype)


def _check(values: Tensor | None, shape: tuple[int, ...], name: str) -> None:
    """Refuse numbers or a mask of another shape than ``shape``, and numbers that are not finite."""
    if values is None:
        return
    mask = name in ("sets", "reached")
    if values.shape != shape or (values.dtype == torch.bool) != mask:
        kind = "a mask" if mask else "numbers"
        raise ValueError(f"`{name}` must be {kind} of shape {shape}; got {values.dtype} {tuple(values.shape)}.")
    if not mask and not bool(torch.isfinite(values).all()):
        raise ValueError(f"`{name}` must be finite; it holds NaN or infinity, so that the model has failed.")
