"""The operations on a graph as ``torch.library`` operators, for ``torch.compile``.

A compiled network cannot hold an ``Edges``; it passes the two tensors of its compressed rows, ``ptr`` and ``index``,
which determine the graph. What else the kernels need is derived from them once for each tensor (:func:`graph_of`). The
results are those of the eager operations, by the same products. Only traced code calls these operators: one costs more
host time than an autograd function.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op
from torch.utils.weak import WeakTensorKeyDictionary

from beltrami.graph.edges import Compressed, Edges, Pattern
from beltrami.graph.ops import dispatch

# The graph is looked up on the host: a CUDA graph would go on with the one that it was captured with.
TAGS = (torch.Tag.cudagraph_unsafe,)
_GRAPHS = WeakTensorKeyDictionary()  # index -> its version and its Edges


def csr_of(pattern: Pattern) -> tuple[Tensor, Tensor, int]:
    """Return the tensors and the number of columns by which the operators know a pattern."""
    return pattern.rows.ptr, pattern.rows.index, pattern.columns.ptr.shape[0] - 1


def graph_of(ptr: Tensor, index: Tensor, columns: int, weight: Tensor | None = None) -> Edges:
    """Return the entries of a pattern as ``Edges``, the same for the same tensors; a matrix need not be square."""
    version, graph = (-1, None) if index.is_inference() else _GRAPHS.get(index, (-1, None))
    if graph is None or version != index._version:
        # Of other tensors with the same values: an entry that holds its own key would never be freed.
        entry = torch.arange(len(index), device=index.device)
        row, column = Compressed(ptr.detach(), index.detach(), entry.int()).row.long(), index.long()
        shape = (len(ptr) - 1, columns)
        graph = Edges(column, row, len(ptr) - 1, None, entry, *Compressed.pair(row, column, shape))
        _remember(index, graph)
    found: Edges = graph if weight is None else replace(graph, weight=weight)
    return found


def remember(edges: Edges) -> Tensor:
    """Return the compressed columns of ``edges`` as a result of an operator, by which ``graph_of`` finds them."""
    index = edges.rows.index.clone()  # the compiler may write to it after its last use
    _remember(index, edges)
    return index


def _remember(index: Tensor, edges: Edges) -> None:
    if not index.is_inference():
        _GRAPHS[index] = (index._version, edges)


@custom_op("beltrami::compress", mutates_args=(), tags=TAGS)
def compress(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the rows of ``Edges.cached`` and its permutation."""
    edges = _current(edge_index, num_nodes)
    return edges.rows.ptr.clone(), remember(edges), edges.permutation.clone()


def _current(edge_index: Tensor, num_nodes: int) -> Edges:
    """Return the cached ``Edges`` if they are those of the present values: compiled code that computes a graph may
    write to a tensor without a new version."""
    edges = Edges.cached(edge_index, num_nodes=num_nodes)
    same = (edge_index[:, edges.permutation] == edges.edge_index).all()
    if edge_index.is_cuda:  # without a synchronisation
        torch._assert_async(same, "a compiled network changed an `edge_index` in place: pass Edges instead.")
        return edges
    return edges if bool(same) else Edges.build(edge_index, num_nodes=num_nodes)


@compress.register_fake
def _(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    m = edge_index.shape[1]
    new = edge_index.new_empty
    return new(num_nodes + 1, dtype=torch.int32), new(m, dtype=torch.int32), new(m, dtype=torch.int64)


@custom_op("beltrami::transpose", mutates_args=(), tags=TAGS)
def transpose(ptr: Tensor, index: Tensor, columns: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the compressed columns: ``ptr``, ``index`` and ``edge``."""
    found = graph_of(ptr, index, columns).columns
    return found.ptr.clone(), found.index.clone(), found.edge.clone()


@transpose.register_fake
def _(ptr: Tensor, index: Tensor, columns: int) -> tuple[Tensor, Tensor, Tensor]:
    return ptr.new_empty(columns + 1), torch.empty_like(index), torch.empty_like(index)


def traced_edges(edge_index: Tensor, num_nodes: int, weight: Tensor | None) -> Edges:
    """Return the ``Edges`` of a graph that is an input of a compiled network, or computed in it."""
    ptr, index, permutation = compress(edge_index, num_nodes)
    j, i = edge_index.long()[:, permutation]
    edge = torch.arange(edge_index.shape[1], dtype=torch.int32, device=edge_index.device)
    columns = Compressed(*transpose(ptr, index, num_nodes))
    weight = None if weight is None else weight[permutation]
    return Edges(j, i, num_nodes, weight, permutation, Compressed(ptr, index, edge), columns)


@custom_op("beltrami::aggregate", mutates_args=(), tags=TAGS)
def aggregate(a: Tensor, z: Tensor, ptr: Tensor, index: Tensor, columns: int, transposed: bool) -> Tensor:
    graph = graph_of(ptr, index, columns)
    return dispatch.spmm(graph.columns if transposed else graph.rows, a, z).contiguous()


@aggregate.register_fake
def _(a: Tensor, z: Tensor, ptr: Tensor, index: Tensor, columns: int, transposed: bool) -> Tensor:
    return z.new_empty(columns if transposed else ptr.shape[0] - 1, z.shape[1], z.shape[2])


@custom_op("beltrami::edge_dot", mutates_args=(), tags=TAGS)
def edge_dot(p: Tensor, q: Tensor, ptr: Tensor, index: Tensor, columns: int) -> Tensor:
    return dispatch.sddmm(graph_of(ptr, index, columns).rows, p, q).contiguous()


@edge_dot.register_fake
def _(p: Tensor, q: Tensor, ptr: Tensor, index: Tensor, columns: int) -> Tensor:
    return p.new_empty(index.shape[0], p.shape[1])


@custom_op("beltrami::transfer", mutates_args=(), tags=TAGS)
def transfer(x: Tensor, ptr: Tensor, index: Tensor, columns: int, senders: bool, kind: str) -> Tensor:
    graph = graph_of(ptr, index, columns)
    if kind == "spread":
        return dispatch.gather(x, graph.j if senders else graph.i).contiguous()
    pattern = graph.columns if senders else graph.rows
    return (dispatch.row_sums if kind == "collect" else dispatch.row_max)(pattern, x).contiguous()


@transfer.register_fake
def _(x: Tensor, ptr: Tensor, index: Tensor, columns: int, senders: bool, kind: str) -> Tensor:
    nodes = columns if senders else ptr.shape[0] - 1
    return x.new_empty(index.shape[0] if kind == "spread" else nodes, x.shape[1])


def _save_product(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.columns, ctx.rest = *inputs[:5], inputs[5:]
    ctx.save_for_backward(*tensors)


def _differentiate_aggregate(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
    (a, z, *csr), (transposed,) = ctx.saved_tensors, ctx.rest
    da = dz = None
    if ctx.needs_input_grad[0]:
        da = edge_dot(z, g, *csr, ctx.columns) if transposed else edge_dot(g, z, *csr, ctx.columns)
    if ctx.needs_input_grad[1]:
        dz = aggregate(a, g, *csr, ctx.columns, not transposed)
    return da, dz, None, None, None, None


def _differentiate_edge_dot(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
    p, q, *csr = ctx.saved_tensors
    dp = aggregate(g, q, *csr, ctx.columns, False) if ctx.needs_input_grad[0] else None
    dq = aggregate(g, p, *csr, ctx.columns, True) if ctx.needs_input_grad[1] else None
    return dp, dq, None, None, None


def _save_transfer(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, ptr, index, *ctx.rest = inputs
    ctx.save_for_backward(ptr, index)


def _differentiate_transfer(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
    columns, senders, kind = ctx.rest
    adjoint = {"spread": "collect", "collect": "spread"}[kind]
    return transfer(g, *ctx.saved_tensors, columns, senders, adjoint), None, None, None, None, None


aggregate.register_autograd(_differentiate_aggregate, setup_context=_save_product)
edge_dot.register_autograd(_differentiate_edge_dot, setup_context=_save_product)
transfer.register_autograd(_differentiate_transfer, setup_context=_save_transfer)
