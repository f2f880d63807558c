"""Steps of a linear recurrence, forwards and backwards: a sparse product together with the terms added to it.

No autograd graph is recorded. On a GPU one launch computes a step for all runs of a batch; on the CPU runs are
computed in turn.

Shapes:
    states (runs, n, d), edge values (runs, m), coefficients (runs,); ``diagonal`` (n, 1). Outputs are contiguous.
"""

import torch
from torch import Tensor

from beltrami.graph.edges import Compressed, Edges
from beltrami.graph.ops import dispatch

Scaled = tuple[float, Tensor]  # a coefficient and the states that it multiplies
Couple = tuple[Tensor, Tensor]


def advance(
    out: Tensor, a: Tensor, y: Tensor, edges: Edges, *, factor: float, previous: Scaled | None = None,
    diagonal: Tensor | None = None,
) -> None:  # fmt: skip
    r"""Write :math:`c B y + k\,b` into ``out``; B is A plus ``diagonal``, ``factor`` is c, ``previous`` is (k, b)."""
    if dispatch.has_kernel(out):
        from beltrami.graph.ops.triton import recurrence_step

        recurrence_step.step(edges.rows, out, a, y, factor=factor, previous=previous, diagonal=diagonal)
        return
    torch.mul(previous[1], previous[0], out=out) if previous else out.zero_()
    _add_product(edges.rows, out, a, y, factor)
    _add_diagonal(out, diagonal, y, factor)


def pull(
    out: Tensor, a: Tensor, p: Tensor, edges: Edges, *, factor: float, previous: Scaled | None = None,
    cotangent: Couple | None = None, edge_sums: Couple | None = None, diagonal: Tensor | None = None,
) -> None:  # fmt: skip
    r"""Write :math:`c B^\top p + k\,b + d\,g` into ``out``, and add :math:`c \langle p_i, q_j \rangle` on the edges.

    The product and the edge values both read p at the receivers of each sender, so that one pass computes both.

    Args:
        factor, previous: c, and (k, b).
        cotangent: d, one number per run, and the states g.
        edge_sums: the states q and the edge values that are added to; None where no edge gradient is needed.
    """
    separate = edge_sums
    if dispatch.has_kernel(out):
        from beltrami.graph.ops.triton import recurrence_step, sparse_product

        separate = edge_sums if p.shape[2] > sparse_product.MAX_CHANNELS else None
        joint = None if separate else edge_sums
        recurrence_step.step(
            edges.columns, out, a, p,
            factor=factor, previous=previous, cotangent=cotangent, edge_sums=joint, diagonal=diagonal,
        )  # fmt: skip
    else:
        if cotangent is None:
            torch.mul(previous[1], previous[0], out=out) if previous else out.zero_()
        else:
            torch.mul(cotangent[1], cotangent[0][:, None, None], out=out)
            if previous is not None:
                out.add_(previous[1], alpha=previous[0])
        _add_diagonal(out, diagonal, p, factor)
        if edge_sums is not None and dispatch.backend(out, in_place=True) == "numba":
            from beltrami.graph.ops import numba

            q, sums = edge_sums
            for r in range(len(p)):
                numba.add_gradients(edges.columns, a[r], p[r], q[r], out[r], sums[r], factor)
            return
        _add_product(edges.columns, out, a, p, factor)
    if separate is not None:
        q, sums = separate
        for r in range(len(p)):
            sums[r].add_(dispatch.sddmm(edges.rows, p[r][:, None], q[r][:, None])[:, 0], alpha=factor)


def _add_diagonal(out: Tensor, diagonal: Tensor | None, y: Tensor, factor: float) -> None:
    if diagonal is not None:
        out.addcmul_(diagonal, y, value=factor)


def _add_product(pattern: Compressed, out: Tensor, a: Tensor, y: Tensor, factor: float) -> None:
    for r in range(len(y)):
        if dispatch.backend(out, in_place=True) == "numba":
            from beltrami.graph.ops import numba

            numba.add_spmm(pattern, a[r], y[r], out[r], factor)
        else:
            out[r].add_(dispatch.spmm(pattern, a[r][:, None], y[r][:, None])[:, 0], alpha=factor)
