"""Edges: a graph sorted by receiver, with what its sparse products need, built once."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from beltrami.errors import check_graph
from beltrami.graph.row_chunks import RowChunks, cut, longest_of


@dataclass(frozen=True, eq=False)
class Compressed:
    """Rows of a sparse pattern: entries ``ptr[r]`` to ``ptr[r + 1]`` of ``index`` are the columns of row r.

    ``edge`` says which edge each entry is, so that edge values can be brought into this order. 32-bit, as the sparse
    libraries want them.
    """

    ptr: Tensor
    index: Tensor
    edge: Tensor

    @cached_property
    def row(self) -> Tensor:
        """The row of each entry, (m,), 32-bit."""
        counts = self.ptr.diff()
        rows = torch.arange(len(counts), device=counts.device, dtype=torch.int32)
        return rows.repeat_interleave(counts, output_size=len(self.index))

    @cached_property
    def pieces(self) -> RowChunks:
        """The rows cut into pieces of bounded length, for kernels that work on many at a time."""
        return cut(self.ptr, longest=longest_of(len(self.index)))

    def to(self, device: torch.device | str) -> "Compressed":
        return Compressed(self.ptr.to(device), self.index.to(device), self.edge.to(device))


@dataclass(frozen=True, eq=False)
class Edges:
    """Directed edges j -> i of a graph, sorted by receiver i (and by sender j within each).

    ``weight`` is a positive measure on the edges: how much each counts where weights are normalised, as if it stood
    there that many times. It carries a user's edge weights and the weight of a self-loop; None is one everywhere.
    Build with :meth:`build`.

    Shapes:
        ``j``, ``i`` (m,); ``weight`` (m,) or None; ``permutation`` (m,): the place of each edge in the original input.
    """

    j: Tensor
    i: Tensor
    num_nodes: int
    weight: Tensor | None
    permutation: Tensor
    rows: Compressed
    columns: Compressed

    @staticmethod
    def build(edge_index: Tensor, *, num_nodes: int, weight: Tensor | None = None) -> "Edges":
        """Sort ``edge_index`` (2, m), rows j and i, by receiver."""
        check_graph(edge_index, num_nodes=num_nodes)
        if weight is not None:
            _check_weight(weight, edge_index.shape[1])
        j, i = edge_index.long()
        permutation = (i * num_nodes + j).argsort(stable=True)
        j, i = j[permutation], i[permutation]
        by_sender = j.argsort(stable=True)
        here = torch.arange(len(j), device=j.device)
        return Edges(
            j=j,
            i=i,
            num_nodes=num_nodes,
            weight=None if weight is None else weight[permutation],
            permutation=permutation,
            rows=Compressed(pointers(i, num_nodes), j.int(), here.int()),
            columns=Compressed(pointers(j, num_nodes), i[by_sender].int(), by_sender.int()),
        )

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
    def mutual(self) -> bool:
        """Whether every edge has its reverse, whatever they weigh."""
        rows, columns = self.rows, self.columns
        return torch.equal(rows.ptr, columns.ptr) and torch.equal(rows.index, columns.index)

    def in_degree(self) -> Tensor:
        """Edges entering each node, (n,)."""
        return self.rows.ptr.diff()

    def out_degree(self) -> Tensor:
        """Edges leaving each node, (n,)."""
        return self.columns.ptr.diff()

    def with_loops(self, weight: float) -> "Edges":
        """The same edges with a self-loop of this weight on every node, in place of any it had."""
        if not weight > 0:
            raise ValueError(
                f"a self-loop needs a positive `weight`; got {weight}. For none, leave the graph as it is."
            )
        other = self.i != self.j
        nodes = torch.arange(self.num_nodes, device=self.device)
        edge_index = torch.cat((self.edge_index[:, other], nodes.expand(2, -1)), dim=1)
        if self.weight is None and weight == 1:
            return Edges.build(edge_index, num_nodes=self.num_nodes)
        here = torch.ones(self.num_edges, device=self.device) if self.weight is None else self.weight
        loops = here.new_full((self.num_nodes,), weight)
        return Edges.build(edge_index, num_nodes=self.num_nodes, weight=torch.cat((here[other], loops)))

    def to(self, device: torch.device | str) -> "Edges":
        if self.device == torch.device(device):
            return self
        return Edges(
            j=self.j.to(device),
            i=self.i.to(device),
            num_nodes=self.num_nodes,
            weight=None if self.weight is None else self.weight.to(device),
            permutation=self.permutation.to(device),
            rows=self.rows.to(device),
            columns=self.columns.to(device),
        )

    def restore(self, values: Tensor) -> Tensor:
        """Edge values (m, ...) from receiver order back to the order of the original ``edge_index``."""
        return torch.empty_like(values).index_copy_(0, self.permutation, values)

    def __repr__(self) -> str:
        weighted = "" if self.weight is None else ", weighted"
        return f"Edges({self.num_nodes} nodes, {self.num_edges} edges{weighted})"


def pointers(index: Tensor, rows: int) -> Tensor:
    """Where each row's entries begin once ``index`` is sorted, (rows + 1,)."""
    counts = torch.bincount(index, minlength=rows)
    return torch.cat((counts.new_zeros(1), counts.cumsum(0))).int()


def check_undirected(edges: Edges, *, needed_by: str) -> None:
    """Refuse a graph that is not its own mirror image, weights included; edges that stand there twice are added up."""
    back = edges.columns.edge.long()
    here, there = edges.i * edges.num_nodes + edges.j, (edges.j * edges.num_nodes + edges.i)[back]  # both ascending
    mirrored = torch.equal(here, there)
    if mirrored and edges.weight is not None:
        pairs, place = here.unique_consecutive(return_inverse=True)
        none = edges.weight.new_zeros(len(pairs))
        mirrored = torch.allclose(
            none.index_add(0, place, edges.weight), none.index_add(0, place, edges.weight[back]), atol=0
        )
    if not mirrored:
        raise ValueError(
            f"{needed_by} needs an undirected graph, both directions of every edge with equal weight, "
            f"and this one is directed; make it undirected with `Symmetric()` or `beltrami.data.undirected`."
        )


def _check_weight(weight: Tensor, num_edges: int) -> None:
    if weight.shape != (num_edges,):
        raise ValueError(f"`weight` must have one value per edge, ({num_edges},); got {tuple(weight.shape)}.")
    if not weight.dtype.is_floating_point:
        raise ValueError(f"`weight` must be floating point; got {weight.dtype}. Try `weight.float()`.")
    if not bool((torch.isfinite(weight) & (weight > 0)).all()):
        raise ValueError("`weight` must be positive and finite on every edge; drop the edges that count for nothing.")
