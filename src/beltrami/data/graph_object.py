"""Graphs from networkx, and from named arrays: npz archives and PyG `Data`."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from beltrami import file_limits as limits
from beltrami.data.frame import column_of
from beltrami.data.graph_table import DropLog, GraphTable, clean_edges
from beltrami.data.npz_reader import UNREADABLE, Arrays, read_npz_arrays
from beltrami.data.roles import Roles, named
from beltrami.data.table import Column, DataTable, Numbers, WordCodes, Words, as_words, sort_names
from beltrami.errors import DataError
from beltrami.graph.sparse_matrix import from_scipy

if TYPE_CHECKING:
    import networkx as nx

NODE_KEY = "(node)"
SETS = {"train": "train_mask", "val": "val_mask", "test": "test_mask"}
FEATURES = ("x", "features", "node_features")
LABELS = ("y", "labels", "node_labels")


def tables_from_networkx(graph: "nx.Graph[Any]", *, source: str) -> tuple[DataTable, DataTable, Tensor | None]:
    """Return the node table, the edge table and the feature matrix of a networkx graph.

    The id of a node is its text. Its attributes become columns; those that are vectors are joined to a matrix (n, d).
    """
    attributes = list(dict.fromkeys(name for _, data in graph.nodes(data=True) for name in data))
    columns: dict[str, Column] = {NODE_KEY: _ids([str(node) for node in graph])}
    matrices = []
    for name in attributes:
        values = [data.get(name) for _, data in graph.nodes(data=True)]
        if any(isinstance(value, (list, tuple, np.ndarray, Tensor)) for value in values):
            matrices.append(_matrix(values, str(name), source))
        else:
            columns[str(name)] = column_of(values)
    edges = list(graph.edges(data="weight"))
    ends: dict[str, Column] = {
        "source": _ids([str(source) for source, _, _ in edges]),
        "target": _ids([str(target) for _, target, _ in edges]),
    }
    if any(weight is not None for _, _, weight in edges):
        ends["weight"] = column_of([weight for _, _, weight in edges])
    tables = [
        DataTable(part, source, np.arange(1, rows + 1), unit)
        for part, rows, unit in ((columns, len(graph), "node"), (ends, len(edges), "edge"))
    ]
    return tables[0], tables[1], torch.cat(matrices, 1) if matrices else None


def read_graphml(path: Path) -> "nx.Graph[Any]":
    """Read a GraphML file with networkx."""
    import networkx as nx

    try:
        limits.check_xml(path)
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # attributes without a type become text
            return nx.read_graphml(path)
    except (
        DataError,
        nx.NetworkXError,
        OSError,
        SyntaxError,
        ValueError,
        LookupError,
    ) as error:  # ParseError is a SyntaxError
        raise DataError(f"{path} cannot be read as GraphML ({error}): write it again.") from None


def read_npz(path: Path) -> Arrays:
    """Read the arrays of an npz archive; arrays of Python objects are left out, and nothing is unpickled."""
    try:
        return read_npz_arrays(path)
    except UNREADABLE as error:
        raise DataError(f"{path} cannot be read as npz ({error}): write it again with `numpy.savez`.") from None


def graph_from_arrays(arrays: Mapping[str, Any], roles: Roles, *, source: str, nodes: int | None = None) -> GraphTable:
    """Return the graph of named arrays or tensors.

    Features are ``x`` (n, d), or the CSR parts ``attr_data``, ``attr_indices``, ``attr_indptr`` and ``attr_shape``.
    Edges are ``edge_index`` (2, m), ``edges`` (m, 2) or the CSR parts ``adj_...``, with weights ``edge_weight`` (m,).
    Labels are ``y`` (n,), or (n, k) for several labels a node, -1 or NaN where unknown. The split is given by
    ``train_mask``, ``val_mask`` and ``test_mask`` (n,). The ids are ``ids`` (n,), else the numbers from 0.
    """
    if roles.id or roles.features or roles.weight:
        raise ValueError(f"{source} holds arrays without column names: leave out `id`, `features` and `weight`.")
    log = DropLog()
    x = _features(arrays, source)
    ends, weight = _edges(arrays, source)
    labels, label_name = _labels(arrays, roles, source)
    split = _split(arrays, roles, source)
    sizes = [nodes, None if x is None else x.shape[0], *(len(label) for label in labels.values())]
    size = next((size for size in sizes if size is not None), None)
    if size is None:
        if ends is None or not ends.size:
            raise DataError(f"{source} has none of x, edge_index and y: it has {', '.join(arrays) or 'no arrays'}.")
        size = int(ends.max()) + 1
    if ends is not None and ends.size and not 0 <= ends.min() <= ends.max() < size:
        wrong = ends.min() if ends.min() < 0 else ends.max()
        raise DataError(f"{source}: the edges name node {wrong}, but there are {size} nodes, counted from 0.")
    edge_index, edge_weight = None, None
    if ends is not None:
        rows = DataTable({}, source, np.arange(1, ends.shape[1] + 1), "edge")
        edge_index, edge_weight = clean_edges(ends, weight, rows=rows, num_nodes=size, log=log)
    ids = [str(name) for name in _array(arrays["ids"])] if "ids" in arrays else [str(k) for k in range(size)]
    if len(set(ids)) < len(ids):
        raise DataError(f"{source}: `ids` holds an id twice: ids must be distinct.")
    found = {"label": label_name, "split": roles.split or ", ".join(SETS.values()) if split is not None else ""}
    return GraphTable(
        source, ids, edge_index, edge_weight, {}, x, labels, split, log.drops, log.counts,
        {role: name for role, name in found.items() if name},
    )  # fmt: skip


def _features(arrays: Mapping[str, Any], source: str) -> Tensor | None:
    if "attr_indptr" in arrays:
        return from_scipy(_sparse_part(arrays, "attr", source))
    found = next((arrays[name] for name in FEATURES if name in arrays), None)
    if found is None:
        return None
    x = torch.as_tensor(found).detach().cpu()
    if x.dim() != 2 or x.is_complex():
        raise DataError(f"{source}: x must be a matrix (nodes, features); its shape is {tuple(x.shape)}.")
    return x.float() if x.layout == torch.strided else x.float().to_sparse_coo().coalesce()


def _sparse_part(arrays: Mapping[str, Any], part: str, source: str) -> csr_array:
    """Return the matrix of ``part_data``, ``part_indices``, ``part_indptr`` and ``part_shape``."""
    try:
        parts = (arrays[f"{part}_data"], arrays[f"{part}_indices"], arrays[f"{part}_indptr"])
        rows, columns = map(int, arrays[f"{part}_shape"])
        matrix = csr_array(parts, shape=(rows, columns))
        matrix.check_format(full_check=True)
    except (KeyError, ValueError, TypeError) as error:
        raise DataError(f"{source}: the arrays {part}_... are no sparse matrix ({error}): write them again.") from None
    return matrix


def _edges(arrays: Mapping[str, Any], source: str) -> tuple[NDArray[np.int64] | None, Column | None]:
    weight = arrays.get("edge_weight")
    if "edge_index" in arrays:
        ends = _array(arrays["edge_index"])
    elif "edges" in arrays:
        ends = _array(arrays["edges"]).T
    elif "adj_t" in arrays:
        if not isinstance(arrays["adj_t"], Tensor):
            raise DataError(f"{source}: `adj_t` must be a sparse tensor of torch: give `edge_index` (2, m) instead.")
        matrix = arrays["adj_t"].to_sparse_coo().coalesce()
        ends, weight = _array(matrix.indices()), matrix.values()
    elif "adj_indptr" in arrays:
        adjacency = _sparse_part(arrays, "adj", source).tocoo()
        ends, weight = np.stack((adjacency.row, adjacency.col)), adjacency.data
    else:
        return None, None
    if ends.ndim != 2 or ends.shape[0] != 2 or (ends.size and ends.dtype.kind not in "iu"):
        raise DataError(f"{source}: edge_index must hold integers (2, m); it is {ends.dtype} of shape {ends.shape}.")
    if weight is None:
        return ends.astype(np.int64), None
    values = _array(weight).astype(np.float64).reshape(-1)
    if len(values) != ends.shape[1]:
        raise DataError(f"{source}: edge_weight has {len(values)} values for {ends.shape[1]} edges.")
    return ends.astype(np.int64), None if bool((values == 1).all()) else Numbers(values)


def _labels(arrays: Mapping[str, Any], roles: Roles, source: str) -> tuple[dict[str, Column], str]:
    found = [name for name in LABELS if name in arrays][:1]
    keys = tuple(found) if roles.label is None else named(roles.label, list(arrays), kind="array")
    labels: dict[str, Column] = {}
    for key in keys:
        values = _array(arrays[key])
        values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        if values.ndim not in (1, 2):
            raise DataError(f"{source}: {key!r} must have shape (nodes,) or (nodes, labels); it has {values.shape}.")
        several = {key: values} if values.ndim == 1 else {f"{key}[{k}]": part for k, part in enumerate(values.T)}
        labels |= {name: _label(part) for name, part in several.items()}
    return labels, ", ".join(keys)


def _label(values: NDArray[Any]) -> Column:
    """Return labels as words, numbers with fractional values as numbers; of integers, -1 is missing."""
    if values.dtype.kind not in "iuf":
        column = column_of(values.tolist())
    else:
        integers = values.dtype.kind in "iu"
        column = as_words(Numbers(np.where(values == -1, np.nan, values) if integers else values.astype(np.float64)))
    return sort_names(column) if isinstance(column, Words) else column


def _split(arrays: Mapping[str, Any], roles: Roles, source: str) -> Words | None:
    if roles.split:
        (key,) = named((roles.split,), list(arrays), kind="array")
        return Words((encoder := WordCodes()).encode([str(v) for v in _array(arrays[key])]), encoder.names)
    masks = {word: _array(arrays[key]) for word, key in SETS.items() if key in arrays}
    if not masks or any(mask.ndim != 1 for mask in masks.values()):
        return None
    if len({len(mask) for mask in masks.values()}) > 1:
        raise DataError(f"{source}: {', '.join(SETS[word] for word in masks)} must have one length.")
    codes = np.full(len(next(iter(masks.values()))), -1, dtype=np.int64)
    for code, mask in enumerate(masks.values()):
        if bool((codes[mask.astype(bool)] >= 0).any()):
            raise DataError(f"{source}: {SETS[list(masks)[code]]} has nodes of another mask: sets must be disjoint.")
        codes[mask.astype(bool)] = code
    return Words(codes, list(masks))


def _matrix(values: Sequence[Any], name: str, source: str) -> Tensor:
    """Return vectors as a matrix (n, d), with a row of NaN where there is none."""
    vectors = [None if value is None else np.asarray(value, dtype=np.float64).reshape(-1) for value in values]
    widths = {len(vector) for vector in vectors if vector is not None}
    if len(widths) != 1:
        raise DataError(f"{source}: the vectors in {name!r} have lengths {sorted(widths)}: they must have one length.")
    width = widths.pop()
    rows = [np.full(width, np.nan) if vector is None else vector for vector in vectors]
    return torch.from_numpy(np.stack(rows).astype(np.float32))


def _ids(values: Sequence[str]) -> Words:
    encoder = WordCodes({""})
    return Words(encoder.encode(values), encoder.names)


def _array(value: Any) -> NDArray[Any]:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
