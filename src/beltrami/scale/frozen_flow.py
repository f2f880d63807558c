"""The frozen flow on blocks of columns: states at some nodes and times, and derivatives, block by block."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from beltrami.errors import NotFinite
from beltrami.graph.ops import dispatch
from beltrami.graph.ops.row_block import RowBlock
from beltrami.scale.block_matrix import BlockMatrix
from beltrami.scale.column_blocks import ColumnBlocks
from beltrami.scale.edge_blocks import BlockArray
from beltrami.scheme.exponential.integrator import MAX_TERMS, coefficients, expected_terms
from beltrami.scheme.exponential.polynomial import Chebyshev

MORE_TERMS = 4  # terms that are added when the error bound is not met


@dataclass(frozen=True, eq=False)
class EdgeGradient:
    """The derivatives of a loss by the weights of the edges, of their reverse edges, and of the diagonal."""

    a: BlockArray
    transposed: BlockArray
    diagonal: Tensor


@dataclass(frozen=True)
class FlowGradient:
    """The derivatives of a loss by alpha and beta."""

    alpha: float
    beta: float


class FrozenFlow:
    r"""The flow :math:`z' = \alpha (B - I) z + \beta z(0)` of a state in blocks of columns.

    The sum of :class:`~beltrami.scheme.Exponential` with the number of terms that it takes in a CUDA graph, for which
    it assumes bounds of rate and slope; unlike there, the error bound is checked on the vectors of all columns, and
    where it fails, more terms are taken. The vectors of the sum exist for one block of columns at a time. The backward
    pass computes them again.

    Args:
        rtol, atol: of the state, in the largest norm, as for ``Exponential``.
    """

    def __init__(self, *, rtol: float, atol: float) -> None:
        self.rtol, self.atol = rtol, atol
        self.extra = 0  # terms beyond the expected ones in the last forward pass

    def terms(self, time: float) -> int:
        """Return the number of the last term."""
        expected = expected_terms(time, rate=1.0, rtol=self.rtol or self.atol)
        return min(expected + self.extra, MAX_TERMS)

    @torch.no_grad()
    def states(
        self, matrix: BlockMatrix, z0: ColumnBlocks, nodes: Tensor, times: Sequence[float], alpha: float, beta: float,
        *, most_bytes: float = math.inf,
    ) -> Tensor:  # fmt: skip
        """Return the states at some nodes and times, (times, nodes, d): on the device, or, if they take more than
        ``most_bytes``, in host memory."""
        shape, start = (len(times), len(nodes), z0.ranges[-1].stop), z0.blocks[0]
        small = math.prod(shape) * start.element_size() <= most_bytes
        sums = torch.empty(shape, dtype=start.dtype, device=z0.device if small else "cpu")
        self.extra = 0
        while True:
            met = self._write_states(sums, matrix, z0, nodes, times, alpha, beta)
            if met:
                return sums
            self.extra += MORE_TERMS

    def _write_states(
        self, sums: Tensor, matrix: BlockMatrix, z0: ColumnBlocks, nodes: Tensor, times: Sequence[float], alpha: float,
        beta: float,
    ) -> bool:  # fmt: skip
        """Write the states into ``sums`` and return whether the error bound is within the tolerances."""
        last, time = self.terms(times[-1]), times[-1]
        d = self._coefficients(torch.tensor(alpha, dtype=torch.float64), times, last).tolist()
        sizes = torch.zeros(3, dtype=torch.float64, device=z0.device)  # of y0 and of the last two vectors
        for _, columns, y0 in z0.load():
            found = y0[nodes].expand(len(times), -1, -1).clone()
            for k, w in enumerate(vectors(matrix, y0, last, alpha, beta)):
                at_nodes = w[nodes]
                for j, factors in enumerate(d):
                    found[j].add_(at_nodes, alpha=factors[k])
                if k >= last - 1:
                    sizes[2 - last + k] = torch.maximum(sizes[2 - last + k], _largest(w))
            sums[:, :, columns] = found
            sizes[0] = torch.maximum(sizes[0], _largest(y0))
        return self._meets(alpha * time, time, last, *sizes.tolist())

    def _meets(self, s: float, time: float, last: int, size: float, before: float, largest: float) -> bool:
        """Return whether the error bound of the sum is within the tolerances."""
        if not math.isfinite(largest + size):
            raise NotFinite("the flow met a term that is NaN or infinite: check the features and the weights.")
        p, q = Chebyshev().bounds(s, size=Chebyshev().size(s))
        if last >= len(p) or last + MORE_TERMS > MAX_TERMS:
            return True  # the rest is below round-off
        bound = time * (float(p[last]) * largest + float(q[last]) * before)
        return bound <= self.atol + self.rtol * size

    def _coefficients(self, alpha: Tensor, times: Sequence[float], last: int) -> Tensor:
        size = max(Chebyshev().size(float(alpha.detach()) * times[-1]), last + 1)
        return coefficients(Chebyshev(), alpha, (0.0, *times), size)[:, : last + 1]

    @torch.no_grad()
    def pull(
        self, matrix: BlockMatrix, z0: ColumnBlocks, nodes: Tensor, grad: Tensor, time: float, alpha: float,
        beta: float, by_z0: ColumnBlocks, by_edges: EdgeGradient | None,
    ) -> FlowGradient:  # fmt: skip
        """Write the derivative of a loss by z(0), add its derivatives by the edges, return those by alpha and beta.

        ``grad`` (nodes, d) is its derivative by the states at the nodes at the ``time``; no node may occur twice.
        """
        with torch.enable_grad():
            rate = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
            d = self._coefficients(rate, (time,), self.terms(time))[0]
        by_d, by_rates = torch.zeros_like(d, device=z0.device), torch.zeros(2, dtype=d.dtype, device=z0.device)
        for number, columns, y0 in z0.load():
            g = torch.zeros_like(y0).index_copy_(0, nodes, grad[:, columns].contiguous())
            found = _pull_block(matrix, y0, g, nodes, d.tolist(), alpha, beta, by_edges)
            by_d += found.coefficients
            by_rates += found.rates
            by_z0.store(number, found.start)
        (through_d,) = torch.autograd.grad(d, rate, by_d.cpu())
        by_alpha, by_beta = by_rates.tolist()
        return FlowGradient(by_alpha + float(through_d), by_beta)


def vectors(
    matrix: BlockMatrix, y0: Tensor, last: int, alpha: float, beta: float, *, keep: bool = False
) -> Iterator[Tensor]:
    """Yield w_k = T_k(B) f(y0) for k = 0 to ``last``; a vector is overwritten two vectors later, unless ``keep``."""
    w, before = torch.empty_like(y0), None
    matrix.advance(w, y0)
    w.sub_(y0).mul_(alpha).add_(y0, alpha=beta)  # not by factors of the product: a kernel is compiled for each of them
    yield w
    c = Chebyshev.factor
    for k in range(last):
        out = torch.empty_like(y0) if keep or before is None else before
        previous = None if before is None else (1.0 - c, before)
        matrix.advance(out, w, factor=c if k else 1.0, previous=previous)
        w, before = out, w
        yield w


@dataclass(frozen=True, eq=False)
class _BlockGradient:
    """The derivatives by y0, by the coefficients of the sum, and by alpha (through f(y0) alone) and beta."""

    start: Tensor
    coefficients: Tensor
    rates: Tensor


def _pull_block(
    matrix: BlockMatrix, y0: Tensor, g: Tensor, nodes: Tensor, d: list[float], alpha: float, beta: float,
    by_edges: EdgeGradient | None,
) -> _BlockGradient:  # fmt: skip
    """Return the derivatives of <g, y0 + sum_k d_k w_k> for a block of columns, and add those by the edges."""
    at_nodes, keep, c = g[nodes], by_edges is not None, Chebyshev.factor
    terms, by_d = [], []
    for w in vectors(matrix, y0, len(d) - 1, alpha, beta, keep=keep):
        by_d.append(torch.sum(at_nodes * w[nodes], dtype=torch.float64))
        if keep:
            terms.append(w)
    cotangents = [g * d[-1]]  # of w_k, from the last one on, the newest first
    for k in reversed(range(len(d) - 1)):
        reuse = not keep and len(cotangents) > 1
        out = cotangents[1] if reuse else torch.empty_like(g)
        previous = (1.0 - c, cotangents[1]) if len(cotangents) > 1 else None
        matrix.pull(out, cotangents[0], factor=c if k else 1.0, previous=previous, cotangent=(d[k], g))
        cotangents = [out, *cotangents] if keep else [out, cotangents[0]]
    by_w = cotangents[0]
    if by_edges is not None:
        factors = [alpha, 1.0, *(c for _ in terms[2:])]
        add_edge_gradient(matrix, by_edges, factors, cotangents, [y0, *terms[:-1]])
    moved = torch.empty_like(g)
    matrix.pull(moved, by_w, previous=(-1.0, by_w))  # (B^T - I) times the derivative by f(y0)
    rates = torch.stack([torch.sum(each * y0, dtype=torch.float64) for each in (moved, by_w)])
    return _BlockGradient(moved.mul_(alpha).add_(by_w, alpha=beta).add_(g), torch.stack(by_d), rates)


def add_edge_gradient(
    matrix: BlockMatrix, total: EdgeGradient, factors: Sequence[float], left: Sequence[Tensor], right: Sequence[Tensor]
) -> None:
    r"""Add :math:`\sum_k c_k \langle l_{k,i}, r_{k,j} \rangle` on the edges, the reverse edges and the diagonal."""
    for number, block, (a, transposed) in matrix.edges.walk(total.a, total.transposed, after_writes=True):
        for c, p, q in zip(factors, left, right, strict=True):
            a.add_(_dots(block, p, q), alpha=c)
            transposed.add_(_dots(block, q, p), alpha=c)
        total.a.write(number, a)
        total.transposed.write(number, transposed)
    for c, p, q in zip(factors, left, right, strict=True):
        total.diagonal.add_((p * q).sum(1), alpha=c)


def _largest(x: Tensor) -> Tensor:
    size: Tensor = torch.linalg.vector_norm(x, math.inf)
    return size.double()


def _dots(block: RowBlock, own: Tensor, other: Tensor) -> Tensor:
    return dispatch.sddmm(block.pattern, own[block.rows][:, None], other[:, None])[:, 0]
