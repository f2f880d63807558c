"""Sums for many linear fields of one pattern, under ``torch.func.vmap``."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from beltrami.scheme.exponential.polynomial import Expansion
from beltrami.scheme.exponential.recurrence_sum import Sums, extend
from beltrami.scheme.sparsity import SparsityPattern


class SideBySide(Function):
    """y0, and y0 + sum_k d_jk w_k at each time j, of one field of a batch.

    Shapes:
        ``y0``, ``w`` (n, d), ``a`` (m,), ``d`` (j, k) -> (1 + j, n, d).
    """

    @staticmethod
    def forward(y0: Tensor, a: Tensor, w: Tensor, d: Tensor, pattern: SparsityPattern, expansion: Expansion) -> Tensor:
        raise RuntimeError("SideBySide is for batches of torch.func.vmap: solve a single field by Exponential itself.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Nothing is kept here, but by the sums of the batch."""

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        y0: Tensor,
        a: Tensor,
        w: Tensor,
        d: Tensor,
        pattern: SparsityPattern,
        expansion: Expansion,
    ) -> tuple[Tensor, int]:
        def stacked(x: Tensor, dim: int | None) -> Tensor:
            return x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0).contiguous()

        runs = [stacked(x, dim) for x, dim in zip((y0, a, w, d), in_dims, strict=False)]
        if not apart(y0):
            return summed(*runs, pattern=pattern, expansion=expansion), 0
        each = zip(*(x.split(1) for x in runs), strict=True)
        return torch.cat([summed(*one, pattern=pattern, expansion=expansion) for one in each]), 0


def summed(y0: Tensor, a: Tensor, w: Tensor, d: Tensor, *, pattern: SparsityPattern, expansion: Expansion) -> Tensor:
    """The sums of all runs at once: (runs, n, d), (runs, ...), (runs, j, k) -> (runs, 1 + j, n, d)."""
    blocks: list[Tensor] = []
    with torch.no_grad():
        extend(blocks, w, a, pattern, expansion.factor, degree=d.shape[2] - 1)
    ys: Tensor = Sums.apply(tuple(blocks), pattern, expansion.factor, None, y0, a, w, d)  # type: ignore[no-untyped-call]
    return ys


def apart(y: Tensor) -> bool:
    """Whether the runs are taken one by one: on a CPU, whose launches are cheap and whose cache is not large."""
    return y.device.type == "cpu"
