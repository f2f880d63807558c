"""Rows of a diffusion kernel as positions, with the options that such encodings share."""

import torch
from torch import Tensor

from beltrami.graph import Edges
from beltrami.graph.pagerank.kernel import Kernel, top_entries
from beltrami.position.base import Progress, announce


def kernel_rows(edges: Edges, kernel: Kernel, *, top: int | None, what: str, progress: Progress | None) -> Tensor:
    """The ``top`` largest entries of every row of a symmetric kernel, then every column scaled to sum to one.

    The kernel is that of the graph with a self-loop of weight one on every node. Sparse (n, n); dense with every entry
    where ``top`` is None.
    """
    done = announce(progress, what, edges.num_nodes)
    columns = top_entries(edges.with_loops(1.0), kernel, top=top, on_columns=done)
    if top is None:
        return columns.t() / columns.sum(1)
    return even_columns(columns.t())


def even_columns(rows: Tensor) -> Tensor:
    """A sparse (n, n) matrix with every column scaled to sum to one."""
    rows = rows.coalesce()
    _, column = rows.indices()
    total = rows.values().new_zeros(rows.shape[1]).index_add(0, column, rows.values())
    values = rows.values() / total[column]
    return torch.sparse_coo_tensor(rows.indices(), values, rows.shape, check_invariants=False).coalesce()


def check_top(top: int | None, *, name: str) -> None:
    """Refuse to keep nothing of a row."""
    if top is not None and top < 1:
        raise ValueError(f"{name} needs `top` at least 1; got {top}. For every entry, pass None.")
