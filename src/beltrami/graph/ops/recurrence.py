"""Steps of a linear recurrence, forwards and backwards: a sparse product together with the terms added to it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from beltrami.graph.edges import Compressed, Edges
from beltrami.graph.ops import dispatch

Scaled = tuple[float, Tensor]  # a coefficient and the states that it multiplies
Couple = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class LinearRecurrence:
    """Steps with B, the matrix A of edge values plus a ``diagonal`` (n, 1).

    No autograd graph is recorded. On a GPU one launch computes a step for all runs of a batch; on the CPU runs are
    computed in turn.

    Shapes:
        states (runs, n, d), edge values ``a`` (runs, m), coefficients (runs,). Outputs are contiguous.
    """

    edges: Edges
    diagonal: Tensor | None = None
    storage: torch.dtype | None = None  # of states on a GPU, shorter than that of the sums

    def term_dtype(self, w: Tensor) -> torch.dtype:
        """Return the type in which the states of a recurrence from ``w`` are kept."""
        return w.dtype if self.storage is None or not dispatch.has_kernel(w) else self.storage

    def advance(self, out: Tensor, a: Tensor, y: Tensor, *, factor: float, previous: Scaled | None = None) -> None:
        r"""Write :math:`c B y + k\,b` into ``out``, where c is ``factor`` and ``previous`` is (k, b)."""
        rows = self.edges.rows
        if dispatch.has_kernel(out):
            from beltrami.graph.ops.triton import recurrence_step

            recurrence_step.step(rows, out, a, y, factor=factor, previous=previous, diagonal=self.diagonal)
            return
        torch.mul(previous[1], previous[0], out=out) if previous else out.zero_()
        _add_product(rows, out, a, y, factor)
        self._add_diagonal(out, y, factor)

    def pull(
        self, out: Tensor, a: Tensor, p: Tensor, *, factor: float, cotangent: Couple, previous: Scaled | None = None,
        edge_sums: Couple | None = None,
    ) -> None:  # fmt: skip
        r"""Write :math:`c B^\top p + k\,b + d\,g` into ``out``, where ``cotangent`` is (d, g); with ``edge_sums`` (q,
        sums), add :math:`c \langle p_i, q_j \rangle` on the edges. Both read p at the receivers of each sender, so that
        one pass computes both."""
        columns, separate = self.edges.columns, edge_sums
        if dispatch.has_kernel(out):
            from beltrami.graph.ops.triton import recurrence_step, sparse_product

            separate = edge_sums if p.shape[2] > sparse_product.MAX_CHANNELS else None
            joint = None if separate else edge_sums
            recurrence_step.step(
                columns, out, a, p,
                factor=factor, previous=previous, cotangent=cotangent, edge_sums=joint, diagonal=self.diagonal,
            )  # fmt: skip
        else:
            torch.mul(cotangent[1], cotangent[0][:, None, None], out=out)
            if previous is not None:
                out.add_(previous[1], alpha=previous[0])
            self._add_diagonal(out, p, factor)
            if edge_sums is not None and dispatch.backend(out, in_place=True) == "numba":
                from beltrami.graph.ops import numba

                q, sums = edge_sums
                for r in range(len(p)):
                    numba.add_gradients(columns, a[r], p[r], q[r], out[r], sums[r], factor)
                return
            _add_product(columns, out, a, p, factor)
        if separate is not None:
            q, sums = separate
            for r in range(len(p)):
                sums[r].add_(dispatch.sddmm(self.edges.rows, p[r][:, None], q[r][:, None])[:, 0], alpha=factor)

    def _add_diagonal(self, out: Tensor, y: Tensor, factor: float) -> None:
        if self.diagonal is not None:
            out.addcmul_(self.diagonal, y, value=factor)


def _add_product(pattern: Compressed, out: Tensor, a: Tensor, y: Tensor, factor: float) -> None:
    for r in range(len(y)):
        if dispatch.backend(out, in_place=True) == "numba":
            from beltrami.graph.ops import numba

            numba.add_spmm(pattern, a[r], y[r], out[r], factor)
        else:
            out[r].add_(dispatch.spmm(pattern, a[r][:, None], y[r][:, None])[:, 0], alpha=factor)
