"""Edges from the forms in which users pass a graph, with the weights and the features of its edges."""

from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor
from torch.compiler import is_compiling
from torch.func import debug_unwrap
from torch.utils.weak import WeakTensorKeyDictionary

from beltrami.graph.edges import Edges, warn_if_directed

SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)
_ATTACHED = WeakTensorKeyDictionary()  # values of edges -> their version, the edges without them (weakly) and with them
_CONVERTED = WeakTensorKeyDictionary()  # sparse matrix -> its version, its `edge_index` and its weights
_PLACES: WeakKeyDictionary[Edges, "tuple[ref[Edges], Tensor]"] = WeakKeyDictionary()


def as_edges(
    graph: Tensor | Edges,
    *,
    num_nodes: int,
    weight: Tensor | None = None,
    features: Tensor | None = None,
    warns: bool = False,
) -> Edges:
    """Return the edges of a graph with their ``weight`` (m,) and their ``features`` (m, d).

    ``graph`` is an ``edge_index`` (2, m), rows j and i, also as PyG's ``EdgeIndex``; a sparse matrix (n, n) in the
    layout COO, CSR or CSC, transposed as PyG's ``adj_t``: row i, column j, and the weight as its value; or ``Edges``.
    Values are in the order of the graph that is given, for a sparse matrix in its order of entries, for ``Edges`` in
    that of the ``edge_index`` that they were built from. The same tensors give the same ``Edges`` again, so that what
    was derived from them is reused. ``warns`` tells of edges in one direction only, once for each tensor.
    """
    if isinstance(graph, Edges):
        edges, values = graph, graph.weight
    else:
        edge_index, values = _from_sparse(graph) if graph.layout in SPARSE else (_plain(graph), None)
        edges = Edges.cached(edge_index, num_nodes=num_nodes)
        if warns:
            warn_if_directed(edge_index, edges)
    if values is not None and weight is not None:
        raise ValueError(f"the {type(graph).__name__} has weights of edges already: leave `edge_weight` out.")
    weight = values if weight is None else weight
    if weight is not None and weight is not edges.weight:
        edges = _attach(edges, weight=weight)
    return edges if features is None else _attach(edges, features=features)


def unpack_graph(data: Any) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Return the graph, the weights and the features of the edges of a PyG ``Data`` object: ``edge_index``, or else
    ``adj_t``; ``edge_weight``, or else an ``edge_attr`` of shape (m,); and an ``edge_attr`` of another shape."""
    graph = data.adj_t if data.edge_index is None else data.edge_index
    weight, features = data.get("edge_weight"), data.edge_attr
    if features is not None and features.dim() == 1:
        return graph, features if weight is None else weight, None
    return graph, weight, features


def follow_features(mesh: Edges, edges: Edges) -> Edges:
    """Return a graph that was made from ``edges`` with the features that its edges have there; those of new edges are
    zero. Parallel edges correspond in their order."""
    if edges.features is None or mesh is edges:
        return mesh
    place = _places(mesh, edges) if is_compiling() else _known_places(mesh, edges)
    padded = torch.cat((edges.features, edges.features.new_zeros(1, edges.features.shape[1])))
    return replace(mesh, features=padded.index_select(0, place))


def _known_places(mesh: Edges, edges: Edges) -> Tensor:
    known = _PLACES.get(mesh)
    if known is None or known[0]() is not edges:
        known = _PLACES[mesh] = (ref(edges), _places(mesh, edges))
    return known[1]


def _places(mesh: Edges, edges: Edges) -> Tensor:
    """Return the number of each edge of ``mesh`` among ``edges``, or their number for an edge that is not one."""
    wanted, keys = (each.i * each.num_nodes + each.j for each in (mesh, edges))  # both ascending
    rank = torch.arange(len(wanted), device=wanted.device) - torch.searchsorted(wanted, wanted)  # of parallel edges
    place = torch.searchsorted(keys, wanted) + rank
    return torch.where(place < torch.searchsorted(keys, wanted, right=True), place, len(keys))


def _plain(edge_index: Tensor) -> Tensor:
    """Return an ``EdgeIndex`` of PyG as the tensor that it holds; others as they are."""
    if type(edge_index).__name__ != "EdgeIndex":
        return edge_index
    plain: Tensor = edge_index.as_tensor()  # type: ignore[attr-defined]
    return plain


def _from_sparse(matrix: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return the ``edge_index`` and the weights of a sparse matrix with row i and column j; None if all are one."""
    if matrix.dim() != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"a sparse `edge_index` must be a matrix (n, n); got shape {tuple(matrix.shape)}.")
    kept = not (matrix.requires_grad or matrix.is_inference())
    known = _CONVERTED.get(matrix) if kept else None
    if known is not None and known[0] == matrix._version:
        return known[1], known[2]
    coo = (matrix if matrix.layout == torch.sparse_coo else matrix.to_sparse_coo()).coalesce()
    (i, j), values = coo.indices(), coo.values()
    values = values.clone() if values.is_floating_point() else values.float()  # a view would keep the matrix alive
    found = torch.stack((j, i)), None if bool((values == 1).all()) else values
    if kept:
        _CONVERTED[matrix] = (matrix._version, *found)
    return found


def _attach(edges: Edges, *, weight: Tensor | None = None, features: Tensor | None = None) -> Edges:
    """Return edges with other weights or features, which are given in the order of the original ``edge_index``."""
    values = weight if features is None else features
    assert values is not None
    if is_compiling():  # neither the values nor the cache are known
        return _replaced(edges, values, features=features is not None)
    kept = not (values.requires_grad or values.is_inference() or debug_unwrap(values) is not values)
    known = _ATTACHED.get(values) if kept else None
    if known is not None and known[0] == values._version and known[1]() is edges:
        found: Edges = known[2]
        return found
    _check(values, edges, name="edge_weight" if features is None else "edge_attr")
    made = _replaced(edges, values, features=features is not None)
    if kept:
        _ATTACHED[values] = (values._version, ref(edges), made)
    return made


def _replaced(edges: Edges, values: Tensor, *, features: bool) -> Edges:
    values = values[edges.permutation]
    return replace(edges, features=values) if features else replace(edges, weight=values)


def _check(values: Tensor, edges: Edges, *, name: str) -> None:
    ndim = 1 if name == "edge_weight" else 2
    if values.dim() != ndim or len(values) != edges.num_edges:
        needed = f"one {'value' if ndim == 1 else 'row'} per edge, ({edges.num_edges}{',' if ndim == 1 else ', d'})"
        hint = "; positions are passed as `pos=`" if ndim == 1 and values.dim() == 2 else ""
        raise ValueError(f"`{name}` must have {needed}; got shape {tuple(values.shape)}{hint}.")
    if not values.is_floating_point():
        raise ValueError(f"`{name}` must be floating point; got {values.dtype}. Try `{name}.float()`.")
    if values.device != edges.device:
        raise ValueError(f"`{name}` is on {values.device} and the graph on {edges.device}: move one with `.to(...)`.")
    if not bool(torch.isfinite(values).all()):
        raise ValueError(f"`{name}` holds values that are NaN or infinite: clean or impute them first.")
    if name == "edge_weight" and not bool((values > 0).all()):
        raise ValueError("`edge_weight` must be positive on every edge: drop the edges of weight zero.")
