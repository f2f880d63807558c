"""Attention weights on the edges, averaged over heads, by a few kernels over the edges of a GPU's graph."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from beltrami.graph.edges import Edges
from beltrami.graph.normalise import Both, Columns, Normaliser, Rows
from beltrami.graph.ops.attention import PairScore, attention_launch, is_fused
from beltrami.graph.ops.dispatch import has_kernel


def fused_weights(pair: PairScore, edges: Edges, *, normalise: Normaliser) -> Tensor | None:
    r"""Attention weights, :math:`a_{ij} = \frac1h \sum_{\eta} a_{ij\eta}`; ``pair`` (n, h, k) -> (m,).

    The weights of each head :math:`\eta` are the pair's scores, linked and normalised. None where no kernel serves:
    compute them by ``normalise(pair.score(edges), edges).mean(-1)``.
    """
    served = not torch.compiler.is_compiling() and has_kernel(pair.p) and edges.num_edges > 0  # compiled: size unknown
    if not (served and is_fused(pair, pair.p, edges, normalise)):
        return None
    out: Tensor = _EdgeWeights.apply(pair.p, pair.q, pair.activation, edges, normalise)  # type: ignore[no-untyped-call]
    return out


class _EdgeWeights(Function):
    @staticmethod
    def forward(ctx: Any, p: Tensor, q: Tensor, activation: Any, edges: Edges, normalise: Normaliser) -> Tensor:
        from beltrami.graph.ops.triton import attention_weights

        launch = attention_launch(p, activation, edges, normalise)
        sides = isinstance(normalise, (Rows, Both)), isinstance(normalise, (Columns, Both))
        out, known = attention_weights.edge_weights(launch, edges, p.contiguous(), q.contiguous(), sides=sides)
        dots, log_weights, totals = known
        ctx.save_for_backward(p, q, dots, log_weights, *totals)
        ctx.launch, ctx.activation, ctx.edges, ctx.normalise = launch, activation, edges, normalise
        return out

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor | None, ...]:
        from beltrami.graph.ops.triton import attention_weights

        p, q, dots, log_weights, *totals = ctx.saved_tensors
        if torch.is_grad_enabled():  # the kernels have no second derivative; plain operations have
            p, q = (x.view_as(x) for x in (p, q))
            weights = ctx.normalise(PairScore(p, q, ctx.activation).score(ctx.edges), ctx.edges).mean(-1)
            found = torch.autograd.grad(weights, (p, q), grad[0], create_graph=True)
        else:
            known, stored = (dots, log_weights, (totals[0], totals[1])), (p.contiguous(), q.contiguous())
            found = attention_weights.gradients(ctx.launch, ctx.edges, *stored, known, grad[0])
        return (*found, None, None, None)
