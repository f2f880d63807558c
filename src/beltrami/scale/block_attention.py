"""Attention weights frozen at z(0) in row blocks, for each edge and for its reverse, and their derivatives."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from beltrami.graph.ops import dispatch
from beltrami.graph.ops.row_block import RowBlock
from beltrami.scale.edge_blocks import BlockArray, EdgeBlocks

LogWeight = Callable[[Tensor], Tensor]  # from dot products to logarithms of weights before normalisation, (m, h)


@dataclass(frozen=True, eq=False)
class BlockAttention:
    r"""Weights :math:`a_{ij} = \frac1h \sum_\eta \exp(l(\langle p_i, q_j \rangle) - \log Z_i)` with row sums of one.

    A self-loop of weight ``loops`` at every node replaces the self-loops of the pattern; the ``diagonal`` is its weight
    after normalisation. The weight of a reverse edge needs the projections of both ends and log Z of the other end
    only, so that it is computed in place, without a permutation of the edges. All sums are over rows and have a fixed
    order.

    Args:
        edges: a symmetric pattern.
        log_weight: l, a function of each dot product alone.
        loops: 0 for none; nodes without edges then have a diagonal of one.
        a: weights of the edges, to be written.
        transposed: weights of the reverse edges, to be written.
    """

    edges: EdgeBlocks
    log_weight: LogWeight
    loops: float
    a: BlockArray
    transposed: BlockArray

    @torch.no_grad()
    def write_weights(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        """Write the weights for projections p, q (n, h, k); return the diagonal (n,) and log Z (n, h)."""
        log_total = p.new_empty(p.shape[:2])
        diagonal = p.new_empty(len(p))
        for k, block, _ in self.edges.walk():
            rows = block.rows
            forward = self._log_weights(block, p[rows], q)
            loop = self._loop(p[rows], q[rows])
            log_total[rows] = _log_sum(block, forward, loop)
            mean = torch.exp(forward - _at_entries(block, log_total[rows])).mean(1)
            self.a.write(k, mean)
            diagonal[rows] = torch.exp(loop - log_total[rows]).mean(1)
            if not self.loops:
                diagonal[rows] = (block.ptr.diff() == 0).to(p.dtype)
        for k, block, _ in self.edges.walk():
            backward = self._log_weights(block, q[block.rows], p)
            mean = torch.exp(backward - dispatch.gather(log_total, block.index)).mean(1)
            self.transposed.write(k, mean)
        self.edges.order_after_writes()  # the products of the flow read both
        return diagonal, log_total

    @torch.no_grad()
    def pull(
        self, p: Tensor, q: Tensor, log_total: Tensor, by_a: BlockArray, by_transposed: BlockArray, by_diagonal: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the derivatives of a loss by p and q.

        ``by_a``, ``by_transposed`` and ``by_diagonal`` are its derivatives by the weights, the weights of the reverse
        edges and the diagonal.

        ``by_transposed`` holds the same numbers as ``by_a`` at the places of the reverse edges.
        """
        heads, dp, dq = p.shape[1], torch.empty_like(p), torch.empty_like(q)
        mean = torch.empty_like(log_total)  # the sum of a times its derivative over each row, of each head
        for _, block, (da,) in self.edges.walk(by_a, after_writes=True):
            rows = block.rows
            dots = dispatch.sddmm(block.pattern, p[rows], q)
            weight = torch.exp(self._masked(block, self.log_weight(dots)) - _at_entries(block, log_total[rows]))
            own = self._own_weight(p[rows], q[rows], log_total[rows])
            mean[rows] = dispatch.row_sums(block.pattern, weight * da[:, None]) + own * by_diagonal[rows, None]
            score = weight.mul_(da[:, None] - _at_entries(block, mean[rows])).div_(heads)
            dp[rows] = dispatch.spmm(block.pattern, self._chain(dots, score), q)
            score = own.mul_(by_diagonal[rows, None] - mean[rows]).div_(heads)
            loop = self._chain((p[rows] * q[rows]).sum(-1), score)[..., None]
            dp[rows] += loop * q[rows]
            dq[rows] = loop * p[rows]
        for _, block, (da,) in self.edges.walk(by_transposed, after_writes=True):
            rows = block.rows
            dots = dispatch.sddmm(block.pattern, q[rows], p)
            total, sender_mean = dispatch.gather(log_total, block.index), dispatch.gather(mean, block.index)
            weight = torch.exp(self._masked(block, self.log_weight(dots)) - total)
            score = weight.mul_(da[:, None] - sender_mean).div_(heads)
            dq[rows] += dispatch.spmm(block.pattern, self._chain(dots, score), p)
        return dp, dq

    def _log_weights(self, block: RowBlock, own: Tensor, other: Tensor) -> Tensor:
        """Return the logarithms of the weights of a block before normalisation, (entries, h)."""
        return self._masked(block, self.log_weight(dispatch.sddmm(block.pattern, own, other)))

    def _masked(self, block: RowBlock, log_weight: Tensor) -> Tensor:
        """Give self-loops of the pattern the weight zero where others replace them."""
        if not self.loops:
            return log_weight
        return log_weight.masked_fill((block.index == block.receivers)[:, None], -math.inf)

    def _loop(self, p: Tensor, q: Tensor) -> Tensor:
        """Return the logarithm of the weight of the self-loop of each row, (rows, h)."""
        if not self.loops:
            return p.new_full(p.shape[:2], -math.inf)
        return self.log_weight((p * q).sum(-1)) + math.log(self.loops)

    def _own_weight(self, p: Tensor, q: Tensor, log_total: Tensor) -> Tensor:
        return torch.exp(self._loop(p, q) - log_total) if self.loops else torch.zeros_like(log_total)

    def _chain(self, dots: Tensor, grad: Tensor) -> Tensor:
        """Return the derivative by dot products from that by the logarithms of weights; zero where a weight is zero."""
        with torch.enable_grad():
            leaf = dots.detach().requires_grad_()
            (found,) = torch.autograd.grad(self.log_weight(leaf), leaf, grad)
        return found


def _log_sum(block: RowBlock, log_weight: Tensor, loop: Tensor) -> Tensor:
    """Return the logarithm of the sum of the weights of each row and its loop; zero for a row without either."""
    top = torch.maximum(dispatch.row_max(block.pattern, log_weight), loop)
    top = torch.where(torch.isfinite(top), top, 0.0)
    total = dispatch.row_sums(block.pattern, torch.exp(log_weight - _at_entries(block, top))) + torch.exp(loop - top)
    return top + torch.where(total > 0, total, 1.0).log()


def _at_entries(block: RowBlock, values: Tensor) -> Tensor:
    """Return values of the rows of a block (rows, h) at their entries, (entries, h)."""
    return dispatch.gather(values, block.pattern.row)
