"""Edges of a graph, sorted by receiver, with the compressed patterns that sparse products read."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Protocol

import torch
from torch import Tensor
from torch.compiler import is_compiling
from torch.func import debug_unwrap
from torch.utils.weak import WeakTensorKeyDictionary

from beltrami.arguments import checked
from beltrami.errors import DirectedGraphWarning, check_graph
from beltrami.graph.row_chunks import RowChunks, chunk_rows

FACTORS = (0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9, 0x14D049BB133111EB)  # odd numbers without a pattern, below 2^63


@dataclass(frozen=True, eq=False)
class Compressed:
    """Compressed rows of a sparse pattern: entries ``ptr[r]`` to ``ptr[r + 1]`` of ``index`` are the columns of row r.

    ``edge`` is the number of each entry's edge, by which edge values are looked up. All three are 32-bit, as the
    sparse libraries require.
    """

    ptr: Tensor
    index: Tensor
    edge: Tensor

    @staticmethod
    def pair(row: Tensor, column: Tensor, shape: tuple[int, int]) -> "tuple[Compressed, Compressed]":
        """Return the pattern of a matrix whose entries are sorted by row, and the pattern of its transpose."""
        by_column = column.argsort(stable=True)
        entry = torch.arange(len(row), device=row.device)
        return (
            Compressed(_pointers(row, shape[0]), column.int(), entry.int()),
            Compressed(_pointers(column, shape[1]), row[by_column].int(), by_column.int()),
        )

    @cached_property
    def row(self) -> Tensor:
        """The row of each entry, (m,), 32-bit."""
        counts = self.ptr.diff()
        rows = torch.arange(len(counts), device=counts.device, dtype=torch.int32)
        return rows.repeat_interleave(counts, output_size=len(self.index))

    @cached_property
    def chunks(self) -> RowChunks:
        """The rows cut into chunks of bounded length, for the Triton kernels."""
        return chunk_rows(self.ptr, entries=len(self.index))

    def to(self, device: torch.device | str) -> "Compressed":
        return Compressed(self.ptr.to(device), self.index.to(device), self.edge.to(device))


class Pattern(Protocol):
    """A sparse pattern by rows and by columns: ``Edges`` or ``SparseMatrix``."""

    @property
    def rows(self) -> Compressed: ...
    @property
    def columns(self) -> Compressed: ...


@dataclass(frozen=True, eq=False)
class Edges:
    """Directed edges j -> i of a graph, sorted by receiver i, and by sender j within each. Build with :meth:`build`.

    ``weight`` is a positive measure on the edges: an edge of weight 2 counts as two edges where weights are
    normalised. It carries a user's edge weights and the weight of self-loops; None is one everywhere. ``features`` are
    read by :class:`~beltrami.diffusivity.WithEdgeFeatures`; graphs made from this one do not have them.
    """

    j: Tensor  # (m,)
    i: Tensor  # (m,)
    num_nodes: int
    weight: Tensor | None  # (m,)
    permutation: Tensor  # (m,), each edge's place in the original input
    rows: Compressed
    columns: Compressed
    features: Tensor | None = None  # (m, d)

    @staticmethod
    @checked
    def build(edge_index: Tensor, *, num_nodes: int, weight: Tensor | None = None) -> "Edges":
        """Sort ``edge_index`` (2, m), rows j and i, by receiver."""
        if is_compiling():
            return _traced(edge_index, num_nodes=num_nodes, weight=weight)
        check_graph(edge_index, num_nodes=num_nodes)
        if weight is not None:
            _check_weight(weight, edge_index.shape[1])
        j, i = edge_index.long()
        permutation = (i * num_nodes + j).argsort(stable=True)
        j, i = j[permutation], i[permutation]
        weight = None if weight is None else weight[permutation]
        return Edges(j, i, num_nodes, weight, permutation, *Compressed.pair(i, j, (num_nodes, num_nodes)))

    @cached_property
    def fingerprint(self) -> int:
        """A number for the nodes, edges and weights, whatever the order of the edges; other graphs have others."""
        mixed = self.j * FACTORS[0] + self.i * FACTORS[1]  # 64-bit integers wrap around
        if self.weight is not None:
            mixed = mixed + self.weight.double().view(torch.int64) * FACTORS[2]
        mixed = (mixed ^ (mixed >> 29)) * FACTORS[2]
        return int((mixed ^ (mixed >> 32)).sum()) ^ self.num_nodes

    @staticmethod
    def cached(edge_index: Tensor, *, num_nodes: int) -> "Edges":
        """Return the same ``Edges`` for the same tensor, so that stencils and kernels reuse what they derived from it.

        An in-place change of the tensor builds new ``Edges``; changes through ``.data`` or numpy are not noticed. The
        cache holds the tensor weakly. Tensors created in inference mode have no version and are not cached, nor is
        anything built inside a ``torch.func`` transform.
        """
        if is_compiling() or edge_index.is_inference():
            return Edges.build(edge_index, num_nodes=num_nodes)
        # What is derived from Edges in inference mode cannot be used in training: each mode has its own entry.
        key = (num_nodes, torch.is_inference_mode_enabled())
        with _CACHE_LOCK:
            version, known = _CACHE.get(edge_index, (-1, {}))
            known = known if version == edge_index._version else {}
            edges: Edges = known[key] if key in known else Edges.build(edge_index, num_nodes=num_nodes)
            if key not in known and debug_unwrap(edges.j) is edges.j:
                _CACHE[edge_index] = (edge_index._version, known | {key: edges})
        return edges

    @property
    def num_edges(self) -> int:
        return len(self.j)

    @property
    def edge_index(self) -> Tensor:
        """(2, m), in receiver order."""
        return torch.stack((self.j, self.i))

    @property
    def device(self) -> torch.device:
        return self.j.device

    @cached_property
    def structurally_symmetric(self) -> bool:
        """Whether every edge has its reverse edge, of any weight."""
        rows, columns = self.rows, self.columns
        return torch.equal(rows.ptr, columns.ptr) and torch.equal(rows.index, columns.index)

    def in_degree(self) -> Tensor:
        """Edges entering each node, (n,)."""
        return self.rows.ptr.diff()

    def out_degree(self) -> Tensor:
        """Edges leaving each node, (n,)."""
        return self.columns.ptr.diff()

    def with_loops(self, weight: float) -> "Edges":
        """Return the same edges with one self-loop of this weight on every node, replacing existing self-loops."""
        if not weight > 0:
            raise ValueError(f"a self-loop needs a positive `weight`; got {weight}. For none, use the graph as it is.")
        other = self.i != self.j
        nodes = torch.arange(self.num_nodes, device=self.device)
        edge_index = torch.cat((self.edge_index[:, other], nodes.expand(2, -1)), dim=1)
        if self.weight is None and weight == 1:
            return Edges.build(edge_index, num_nodes=self.num_nodes)
        old = torch.ones(self.num_edges, device=self.device) if self.weight is None else self.weight
        loops = old.new_full((self.num_nodes,), weight)
        return Edges.build(edge_index, num_nodes=self.num_nodes, weight=torch.cat((old[other], loops)))

    def to(self, device: torch.device | str) -> "Edges":
        if self.device == torch.device(device):
            return self
        j, i, permutation = (x.to(device) for x in (self.j, self.i, self.permutation))
        weight = None if self.weight is None else self.weight.to(device)
        features = None if self.features is None else self.features.to(device)
        patterns = self.rows.to(device), self.columns.to(device)
        return Edges(j, i, self.num_nodes, weight, permutation, *patterns, features)

    def restore(self, values: Tensor) -> Tensor:
        """Return edge values (m, ...) in the order of the original ``edge_index``."""
        return torch.empty_like(values).index_copy_(0, self.permutation, values)

    def __repr__(self) -> str:
        weighted = "" if self.weight is None else ", weighted"
        return f"Edges({self.num_nodes} nodes, {self.num_edges} edges{weighted})"


_CACHE = WeakTensorKeyDictionary()  # tensor -> its version and {(nodes, inference mode): Edges}
_CACHE_LOCK = Lock()
_WARNED = WeakTensorKeyDictionary()  # the tensors that were checked for edges without their reverse


def warn_if_directed(edge_index: Tensor, edges: Edges) -> None:
    """Warn, once for each tensor, if some of a user's edges lack their reverse; ``edges`` are those of the tensor."""
    if is_compiling() or edges.structurally_symmetric or edge_index in _WARNED:
        return
    _WARNED[edge_index] = True
    key, reverse = edges.i * edges.num_nodes + edges.j, edges.j * edges.num_nodes + edges.i
    missing = int((~torch.isin(reverse, key)).sum())
    if missing:  # else only the numbers of parallel edges differ
        warnings.warn(
            f"{missing} of {edges.num_edges} edges of `edge_index` have no reverse edge, and the flow follows their "
            "directions: if the graph is undirected, pass it through `beltrami.data.undirected` or "
            "`torch_geometric.utils.to_undirected` first.",
            DirectedGraphWarning,
            stacklevel=4,
        )


def check_undirected(edges: Edges, *, needed_by: str) -> None:
    """Refuse a graph in which an edge and its reverse differ in weight; parallel edges are added up first."""
    reverse = edges.columns.edge.long()
    key, reverse_key = edges.i * edges.num_nodes + edges.j, (edges.j * edges.num_nodes + edges.i)[reverse]  # ascending
    symmetric = torch.equal(key, reverse_key)
    if symmetric and edges.weight is not None:
        pairs, place = key.unique_consecutive(return_inverse=True)
        zero = edges.weight.new_zeros(len(pairs))
        symmetric = torch.allclose(
            zero.index_add(0, place, edges.weight), zero.index_add(0, place, edges.weight[reverse]), atol=0
        )
    if not symmetric:
        raise ValueError(
            f"{needed_by} needs an undirected graph, both directions of every edge with equal weight, "
            f"and this one is directed; make it undirected with `Symmetric()` or `beltrami.data.undirected`."
        )


def _traced(edge_index: Tensor, *, num_nodes: int, weight: Tensor | None) -> Edges:
    from beltrami.graph.ops.operators import traced_edges

    return traced_edges(edge_index, num_nodes, weight)


def _pointers(index: Tensor, rows: int) -> Tensor:
    """Return where the entries of each row begin, (rows + 1,)."""
    counts = torch.bincount(index, minlength=rows)
    return torch.cat((counts.new_zeros(1), counts.cumsum(0))).int()


def _check_weight(weight: Tensor, num_edges: int) -> None:
    if weight.shape != (num_edges,):
        raise ValueError(f"`weight` must have one value per edge, ({num_edges},); got {tuple(weight.shape)}.")
    if not weight.dtype.is_floating_point:
        raise ValueError(f"`weight` must be floating point; got {weight.dtype}. Try `weight.float()`.")
    if not bool((torch.isfinite(weight) & (weight > 0)).all()):
        raise ValueError("`weight` must be positive and finite on every edge; drop the edges of weight zero.")
