"""Stencils of the input graph as a ``torch.library`` operator, for ``torch.compile``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import torch
from torch import Tensor
from torch.library import custom_op, get_ctx

from beltrami.graph import Edges
from beltrami.graph.edges import Compressed
from beltrami.graph.ops.operators import TAGS, graph_of, remember, transpose

if TYPE_CHECKING:
    from beltrami.stencil.base import Fixed

STENCILS: "WeakValueDictionary[int, Fixed]" = WeakValueDictionary()  # by their id


def rewired_edges(stencils: "Sequence[Fixed]", z: Tensor, edges: Edges) -> Edges:
    """Return the graph of stencils applied one after the other, whose number of edges a compiled network does not know;
    its weights may all be one."""
    n = edges.num_nodes
    ptr, index, row, weight = rewire(
        edges.rows.ptr, edges.rows.index, edges.weight, [id(stencil) for stencil in stencils]
    )
    edge = torch.arange(index.shape[0], device=index.device)
    columns = Compressed(*transpose(ptr, index, n))
    return Edges(index.long(), row, n, weight.to(z.dtype), edge, Compressed(ptr, index, edge.int()), columns)


@custom_op("beltrami::rewire", mutates_args=(), tags=TAGS)
def rewire(
    ptr: Tensor, index: Tensor, weight: Tensor | None, stencils: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the compressed rows of the new graph, the row of each entry, and the weights in double precision."""
    edges = graph_of(ptr, index, len(ptr) - 1, weight)
    for stencil in stencils:
        edges = STENCILS[stencil].rewired(edges)
    found = remember(edges)
    values = torch.ones(edges.num_edges, device=edges.device) if edges.weight is None else edges.weight
    return edges.rows.ptr.clone(), found, edges.i.clone(), values.to(torch.float64, copy=True)


@rewire.register_fake
def _(
    ptr: Tensor, index: Tensor, weight: Tensor | None, stencils: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    m = get_ctx().new_dynamic_size()
    long, double = index.new_empty(m, dtype=torch.int64), index.new_empty(m, dtype=torch.float64)
    return torch.empty_like(ptr), index.new_empty(m), long, double
