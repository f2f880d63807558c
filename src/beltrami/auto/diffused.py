"""Diffused features exp(t (P - I)) X at some nodes, by whichever of two solves is smaller."""

from collections.abc import Callable, Iterator, Sequence

import torch
from scipy.sparse import csr_array
from torch import Tensor

from beltrami.graph import Columns, Edges, Normaliser, SparseMatrix, aggregate
from beltrami.model.coder import Matrix
from beltrami.model.linear_diffusion import columns_per_block, random_walk_evolution


@torch.no_grad()
def diffused_features(x: Matrix, edges: Edges, nodes: Tensor, times: Sequence[float]) -> Tensor:
    r"""Return the rows of :math:`e^{t (P - I)} X` at ``nodes``, for the P of :class:`LinearDiffusion`.

    The columns of X are diffused if they are fewer than the nodes. Otherwise, for every node i, the transposed flow
    diffuses the unit vector :math:`e_i`, which gives the weights of all nodes in row i:
    :math:`(e^{t (P - I)} X)_{i \cdot} = (e^{t (P^\top - I)} e_i)^\top X`. Either is done in blocks of columns.

    Args:
        x: features, dense or sparse.
        nodes: node indices (k,).
        times: increasing, from 0.

    Shapes:
        ``x`` (n, d) -> (len(times), k, d).
    """
    out = torch.empty(len(times), len(nodes), x.shape[1], dtype=x.dtype, device=edges.device)
    later = [t for t in times if t > 0]
    first = len(times) - len(later)
    if first:
        out[0] = feature_rows(x, nodes)
    if later and x.shape[1] <= len(nodes):
        for block, ys in _solve(lambda block: _dense_columns(x, block), x.shape[1], edges, later, dtype=x.dtype):
            out[first:, :, block] = ys[:, nodes]
    elif later:
        reverse = Edges.build(edges.edge_index.flip(0), num_nodes=edges.num_nodes, weight=edges.weight)

        def unit_vectors(block: slice) -> Tensor:
            start = torch.zeros(edges.num_nodes, block.stop - block.start, dtype=x.dtype, device=edges.device)
            start[nodes[block], torch.arange(start.shape[1], device=edges.device)] = 1
            return start

        for block, ys in _solve(unit_vectors, len(nodes), reverse, later, dtype=x.dtype, normalise=Columns()):
            out[first:, block] = torch.stack([_transposed_product(x, y).T for y in ys])
    return out


def feature_rows(x: Matrix, nodes: Tensor) -> Tensor:
    """Return rows of ``x`` (n, d), dense, (k, d)."""
    if isinstance(x, Tensor):
        return x[nodes]
    parts = (x.values[x.rows.edge], x.rows.index, x.rows.ptr)
    rows = csr_array(tuple(part.cpu().numpy() for part in parts), shape=x.shape)[nodes.cpu().numpy()].toarray()
    return torch.from_numpy(rows).to(nodes.device)


def _dense_columns(x: Matrix, block: slice) -> Tensor:
    """Return a block of columns of ``x`` (n, d), dense, (n, c)."""
    if isinstance(x, Tensor):
        return x[:, block].contiguous()
    entries = slice(int(x.columns.ptr[block.start]), int(x.columns.ptr[block.stop]))
    out = x.values.new_zeros(x.shape[0], block.stop - block.start)
    row, column = x.columns.index[entries].long(), x.columns.row[entries].long() - block.start
    out[row, column] = x.values[x.columns.edge[entries]]
    return out


def _transposed_product(x: Matrix, y: Tensor) -> Tensor:
    r"""Return :math:`X^\top y`, (n, d), (n, c) -> (d, c)."""
    return aggregate(x.values, y, x, transposed=True) if isinstance(x, SparseMatrix) else x.T @ y


def _solve(
    start: Callable[[slice], Tensor],
    columns: int,
    edges: Edges,
    times: Sequence[float],
    *,
    dtype: torch.dtype,
    normalise: Normaliser | None = None,
) -> Iterator[tuple[slice, Tensor]]:
    """Yield blocks of columns with their states at ``times``, (len(times), n, c)."""
    evolution = random_walk_evolution(time=times[-1], normalise=normalise)
    width = columns_per_block(edges.num_nodes, times=len(times), dtype=dtype)
    for low in range(0, columns, width):
        block = slice(low, min(low + width, columns))
        yield block, evolution.trajectory(start(block), edges, (0.0, *times)).ys[1:]
