r"""Triton kernel of the Chebyshev coefficients of a flow and of their derivatives by its rate, in one launch.

The same numbers as ``Chebyshev.coefficients``: values of :math:`\varphi_1(-u)` at the Chebyshev nodes, and a matrix of
cosines. Plain operations take some thirty launches for them, forwards and backwards, on a few dozen numbers.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd import Function
from triton import cdiv

from beltrami.scheme.exponential.polynomial import NEAR, SERIES, chebyshev_cosines, chebyshev_nodes

COLUMNS = 32  # coefficients of a program
ROWS = 64  # nodes at a time


@triton.jit(do_not_specialize=["size", "wanted"])
def _coefficients(
    alpha, times, nodes, cosines, out, slopes, size, wanted,
    X: tl.constexpr, K: tl.constexpr, SERIES: tl.constexpr, NEAR: tl.constexpr,
):  # fmt: skip
    """d_k and its derivative by alpha at time j, for k below ``wanted``: t phi(alpha t x) times the cosines."""
    j, k = tl.program_id(0), tl.program_id(1) * K + tl.arange(0, K)
    t, a = tl.load(times + j), tl.load(alpha).to(tl.float64)
    value, slope = tl.zeros((K,), tl.float64), tl.zeros((K,), tl.float64)
    for first in range(0, size, X):
        x = first + tl.arange(0, X)
        there = x < size
        node = t * tl.load(nodes + x, mask=there, other=0.0)
        u = a * node
        small, large = tl.minimum(u, NEAR), tl.maximum(u, NEAR)
        phi, falling = small * 0.0 + 1.0, small * 0.0 + 1.0  # Horner's scheme for phi_1(-u) and minus its derivative
        for term in tl.static_range(SERIES, 0, -1):
            phi = 1.0 - small * (1.0 / (term + 1.0)) * phi
            falling = 1.0 - small * ((term + 1.0) / (term * (term + 2.0))) * falling
        decay = tl.exp(-large)
        closed = (1.0 - decay) / large
        phi_slope = tl.where(u < NEAR, -0.5 * falling, (decay - closed) / large) * node
        phi = tl.where(u < NEAR, phi, closed)
        cells = there[:, None] & (k < size)[None, :]
        cosine = tl.load(cosines + x[:, None] * size + k[None, :], mask=cells, other=0.0)
        value += tl.sum(phi[:, None] * cosine, 0)
        slope += tl.sum(phi_slope[:, None] * cosine, 0)
    tl.store(out + j * wanted + k, t * value, mask=k < wanted)
    tl.store(slopes + j * wanted + k, t * slope, mask=k < wanted)


def coefficients(alpha: Tensor, times: Tensor, *, size: int, wanted: int, dtype: torch.dtype) -> Tensor:
    """Return t d_k(alpha t) for each of ``times`` (j,) and k below ``wanted``, from ``size`` nodes; differentiable by
    ``alpha`` (); (j, wanted)."""
    out: Tensor = _Coefficients.apply(alpha, times, size, wanted, dtype)
    return out


class _Coefficients(Function):
    @staticmethod
    def forward(ctx: Any, alpha: Tensor, times: Tensor, size: int, wanted: int, dtype: torch.dtype) -> Tensor:
        out, slopes = (times.new_empty(len(times), wanted, dtype=dtype) for _ in range(2))
        nodes, cosines = chebyshev_nodes(times.device, size), chebyshev_cosines(times.device, size)
        with torch.cuda.device_of(times):
            _coefficients[len(times), cdiv(wanted, COLUMNS)](
                alpha.detach(), times, nodes, cosines, out, slopes, size, wanted,
                X=ROWS, K=COLUMNS, SERIES=SERIES, NEAR=NEAR,
            )  # fmt: skip
        ctx.save_for_backward(slopes)
        ctx.like = alpha.dtype
        return out

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor | None, ...]:
        (slopes,) = ctx.saved_tensors
        return (grad[0] * slopes).sum().to(ctx.like), None, None, None, None
