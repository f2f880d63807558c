"""Vectors divided by their norms: on the CPU by numba in one pass, and one for the gradient."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional as F

from beltrami.graph.ops import dispatch

LEAST = 1e-12  # shorter vectors are divided by this number


def unit(x: Tensor) -> Tensor:
    r"""Divide vectors along the last axis by their norms, :math:`u = x / \max(\|x\|, 10^{-12})`, as
    ``torch.nn.functional.normalize``, whose gradient takes ten passes over x on a CPU."""
    if dispatch.attention_backend(x) != "numba" or x.numel() == 0:
        return F.normalize(x, dim=-1, eps=LEAST)
    out: Tensor = _Unit.apply(x)  # type: ignore[no-untyped-call]
    return out


class _Unit(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        from beltrami.graph.ops import numba

        out, norm = numba.unit(x.contiguous(), LEAST)
        ctx.save_for_backward(x, out, norm)
        return out

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> Tensor:
        from beltrami.graph.ops import numba

        x, out, norm = ctx.saved_tensors
        if not torch.is_grad_enabled():
            return numba.unit_gradient(out, norm, grad[0].contiguous(), LEAST)
        x = x.view_as(x)  # the loops have no second derivative; plain operations have
        dx: Tensor = torch.autograd.grad(F.normalize(x, dim=-1, eps=LEAST), x, grad[0], create_graph=True)[0]
        return dx
