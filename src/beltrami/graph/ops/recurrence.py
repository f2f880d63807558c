"""Steps of a linear recurrence, forwards and backwards, with all they add: no sweep over the states but the product's.

None of them makes a graph. On a GPU a step is one walk for all runs of a batch; on the CPU runs are taken one by one.

Shapes:
    states (runs, n, d), edge values (runs, m), numbers (runs,); ``idle`` (n, 1). What is written to is contiguous.
"""

import torch
from torch import Tensor

from beltrami.graph.edges import Compressed, Edges
from beltrami.graph.ops import dispatch

Scaled = tuple[float, Tensor]  # a number and the states it is to multiply
Couple = tuple[Tensor, Tensor]


def advance(
    out: Tensor,
    a: Tensor,
    y: Tensor,
    edges: Edges,
    *,
    factor: float,
    before: Scaled | None = None,
    idle: Tensor | None = None,
) -> None:
    r"""Write :math:`c B y + k\,b` into ``out``; B is A, with ``idle`` on its diagonal besides.

    Args:
        factor: c.
        before: k and the states b.
    """
    if dispatch.has_kernel(out):
        from beltrami.graph.ops.triton import recurrence

        recurrence.step(edges.rows, out, a, y, factor=factor, before=before, idle=idle)
        return
    _begin(out, before, None)
    _add_product(edges.rows, out, a, y, factor)
    _add_idle(out, idle, y, factor)


def pull(
    out: Tensor,
    a: Tensor,
    p: Tensor,
    edges: Edges,
    *,
    factor: float,
    before: Scaled | None = None,
    given: Couple | None = None,
    across: Couple | None = None,
    idle: Tensor | None = None,
) -> None:
    r"""Write :math:`c B^\top p + k\,b + d\,g` into ``out``, and add :math:`c \langle p_i, q_j \rangle` on the edges.

    The product and the edges both read p at the receivers of each sender: one walk.

    Args:
        factor: c.
        before: k and the states b.
        given: a number d a run and the states g.
        across: the states q and the edge values that are added to, or None where nobody asks for them.
    """
    wide = across
    if dispatch.has_kernel(out):
        from beltrami.graph.ops.triton import product, recurrence

        wide = across if p.shape[2] > product.WIDEST else None
        fitting = None if wide else across
        recurrence.step(
            edges.columns, out, a, p, factor=factor, before=before, given=given, across=fitting, idle=idle
        )  # fmt: skip
    else:
        _begin(out, before, given)
        _add_idle(out, idle, p, factor)
        if across is not None and dispatch.can_compile(out):
            _add_both(edges, out, a, p, across, factor)
            return
        _add_product(edges.columns, out, a, p, factor)
    if wide is not None:
        q, sums = wide
        for r in range(len(p)):
            sums[r].add_(dispatch.sddmm(edges.rows, p[r][:, None], q[r][:, None])[:, 0], alpha=factor)


def _begin(out: Tensor, before: Scaled | None, given: Couple | None) -> None:
    """k b + d g into ``out``."""
    if given is None:
        torch.mul(before[1], before[0], out=out) if before else out.zero_()
        return
    torch.mul(given[1], given[0][:, None, None], out=out)
    if before is not None:
        out.add_(before[1], alpha=before[0])


def _add_idle(out: Tensor, idle: Tensor | None, y: Tensor, factor: float) -> None:
    if idle is not None:
        out.addcmul_(idle, y, value=factor)


def _add_product(pattern: Compressed, out: Tensor, a: Tensor, y: Tensor, factor: float) -> None:
    for r in range(len(y)):
        if dispatch.can_compile(out):
            from beltrami.graph.ops import numba

            numba.add_spmm(pattern, a[r], y[r], out[r], factor)
        else:
            out[r].add_(dispatch.spmm(pattern, a[r][:, None], y[r][:, None])[:, 0], alpha=factor)


def _add_both(edges: Edges, out: Tensor, a: Tensor, p: Tensor, across: Couple, factor: float) -> None:
    from beltrami.graph.ops import numba

    q, sums = across
    for r in range(len(p)):
        numba.add_pulled(edges.columns, a[r], p[r], q[r], out[r], sums[r], factor)
