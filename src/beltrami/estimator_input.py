"""From the arrays, data frames and graphs of scikit-learn's users to the library's tables."""

import warnings
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, validate_data

from beltrami.data.frame import table_from_frame
from beltrami.data.graph_object import graph_from_arrays
from beltrami.data.graph_table import GraphTable
from beltrami.data.roles import Roles
from beltrami.data.table import Column, Words
from beltrami.errors import DirectedGraphWarning
from beltrami.graph.sparse_matrix import from_scipy

Array = NDArray[Any]
UNLABELLED = -1
ONE_DIRECTION = "edges given in one direction, used in both"  # a count of `GraphTable`


def features(estimator: Any, x: Any, y: Any = "no_validation", *, reset: bool = True) -> Any:
    """Return features after the checks of scikit-learn: an array, a sparse matrix, or, for a data frame with columns
    of words, its columns by name. Of ``y`` only None is refused."""
    if y is None:
        validate_data(estimator, x, y=None)  # says that y is missing
    if _has_words(x):
        validate_data(estimator, x, reset=reset, skip_check_array=True)
        return table_from_frame(x, source="X").columns
    smallest = 2 if reset else 1
    checks = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": "allow-nan"}
    return validate_data(estimator, x, reset=reset, ensure_min_samples=smallest, **checks)


def class_column(y: Array) -> tuple[Array, dict[str, Column]]:
    """Return the classes in ``y`` (n,), sorted, and the column of their numbers."""
    known = _known(y)
    values = np.array(y[known].tolist()) if y.dtype == object else y[known]
    assert_all_finite(values, input_name="y")
    check_classification_targets(values)
    classes, found = np.unique(values, return_inverse=True)
    codes = np.full(len(y), UNLABELLED)
    codes[known] = found
    return classes, {"y": Words(codes, [str(c) for c in range(len(classes))])}


def label_columns(y: Array) -> tuple[Array, dict[str, Column]]:
    """Return the numbers of the labels, and a column for each of them, from 0 and 1 (n, labels)."""
    known = ((y == 0) | (y == 1)).all(1)
    if not (known | (y == UNLABELLED).all(1) | (y != y).all(1)).all():
        raise ValueError("`y` with several columns must hold 0 and 1, or -1 in all columns of an unlabelled row.")
    codes = np.where(known[:, None], y, UNLABELLED).astype(np.int64)
    return np.arange(y.shape[1]), {str(c): Words(column, ["0", "1"]) for c, column in enumerate(codes.T)}


def check_recipe(recipe: str, average: bool) -> bool:
    """Refuse a recipe that is unknown or has nothing to average; return ``average``."""
    if recipe not in ("auto", "linear"):
        raise ValueError(f"`recipe` must be 'auto' or 'linear'; got {recipe!r}.")
    if recipe == "linear" and average:
        raise ValueError("`recipe='linear'` trains one model, and `average` averages several: leave one out.")
    return average


def labelled_rows(labels: Mapping[str, Column]) -> int:
    """Return how many rows have a label."""
    column = next(iter(labels.values()))
    return int((column.codes >= 0).sum() if isinstance(column, Words) else (~np.isnan(column.values)).sum())


def _known(y: Array) -> Array:
    """Return the mask of known classes: -1, None and NaN are unknown."""
    if y.dtype.kind in "iuf":
        return np.asarray((y != UNLABELLED) & (y == y))
    if y.dtype != object:
        return np.ones(len(y), dtype=bool)
    unknown = [each is None or each != each or (not isinstance(each, str) and each == UNLABELLED) for each in y]
    return ~np.array(unknown, dtype=bool)


def as_table(x: Any, edges: Any = None, *, labels: Mapping[str, Column] | None = None) -> GraphTable:
    """Return features, edges and labels as the library's table; the ids are the numbers of the rows."""
    rows = len(next(iter(x.values()))) if isinstance(x, Mapping) else x.shape[0]
    arrays = _edge_arrays(edges, rows)
    if not isinstance(x, Mapping):
        arrays["x"] = from_scipy(cast(csr_array, x)) if issparse(x) else torch.from_numpy(np.array(x, dtype=np.float32))
    table = graph_from_arrays(arrays, Roles(), source="X", nodes=rows)
    table.columns.update(x if isinstance(x, Mapping) else {})
    table.labels.update(labels or {})
    if count := table.counts.get(ONE_DIRECTION, 0):
        warnings.warn(
            f"{count} of {table.num_edges} edges were given in one direction and are used in both.",
            DirectedGraphWarning,
            stacklevel=4,
        )
    return table


def _edge_arrays(edges: Any, rows: int) -> dict[str, Any]:
    """Return edges in any of their forms as the arrays of :func:`graph_from_arrays`."""
    if edges is None:
        return {}
    if issparse(edges):
        edges = cast(csr_array, edges)
        if edges.shape != (rows, rows):
            raise ValueError(f"`edges` must have shape ({rows}, {rows}), one row for each row of X; got {edges.shape}.")
        matrix = edges.tocoo()
        return {"edge_index": np.stack((matrix.row, matrix.col)).astype(np.int64), "edge_weight": matrix.data}
    if not hasattr(edges, "nodes"):
        return {"edge_index": edges}
    if len(edges) != rows:
        raise ValueError(f"`edges` has {len(edges)} nodes where X has {rows} rows: give a row for each node.")
    numbered = set(edges) == set(range(rows))
    place = {node: node if numbered else k for k, node in enumerate(edges)}
    found = [(place[a], place[b], weight) for a, b, weight in edges.edges(data="weight", default=1.0)]
    found += [] if edges.is_directed() else [(b, a, weight) for a, b, weight in found]
    pairs = np.array([pair[:2] for pair in found], dtype=np.int64).reshape(-1, 2).T
    return {"edge_index": pairs, "edge_weight": np.array([weight for *_, weight in found])}


def _has_words(x: Any) -> bool:
    """Return whether ``x`` is a data frame with columns that are no numbers."""
    return hasattr(x, "columns") and hasattr(x, "shape") and np.asarray(x).dtype.kind not in "biuf"
