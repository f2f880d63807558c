"""The sparse products added to what is there, for recurrences on the CPU: no sweep over the state but the product's."""

from torch import Tensor

from beltrami.graph.edges import Edges
from beltrami.graph.ops import backend


def add_aggregate(out: Tensor, a: Tensor, z: Tensor, edges: Edges, *, factor: float = 1.0) -> None:
    r"""Add :math:`c A z` to ``out``, without a graph.

    Shapes:
        ``a`` (m,), ``z`` (n, d), ``out`` (n, d) and contiguous.
    """
    if backend.can_compile(out):
        from beltrami.graph.ops import compiled

        compiled.add_spmm(edges.rows, a, z, out, factor)
    else:
        out.add_(backend.spmm(edges.rows, a[:, None], z[:, None])[:, 0], alpha=factor)


def add_pulled(out: Tensor, da: Tensor, a: Tensor, p: Tensor, q: Tensor, edges: Edges, *, factor: float = 1.0) -> None:
    r"""Add the derivatives of :math:`c \langle p, A q \rangle`, by q to ``out`` and by the weights to ``da``.

    .. math:: c A^\top p, \qquad c \langle p_i, q_j \rangle

    Both read p at the receivers of each sender, and are here one walk along the edges. Without a graph.

    Shapes:
        ``a``, ``da`` (m,), ``p``, ``q``, ``out`` (n, d); ``out`` and ``da`` contiguous.
    """
    if backend.can_compile(out):
        from beltrami.graph.ops import compiled

        compiled.add_pulled(edges.columns, a, p, q, out, da, factor)
    else:
        out.add_(backend.spmm(edges.columns, a[:, None], p[:, None])[:, 0], alpha=factor)
        da.add_(backend.sddmm(edges.rows, p[:, None], q[:, None])[:, 0], alpha=factor)
