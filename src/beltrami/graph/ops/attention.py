"""Fused attention: scores, weights and aggregation by Triton, without storing anything on the edges, or by numba."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.compiler import is_compiling
from torch.func import debug_unwrap
from torch.nn import functional as F

from beltrami.arguments import Finite, checked
from beltrami.graph.edges import Edges
from beltrami.graph.normalise import Both, Columns, Normaliser, Rows, softmax_link, squareplus_link
from beltrami.graph.ops import dispatch
from beltrami.graph.ops.products import aggregate, edge_dot

if TYPE_CHECKING:
    from beltrami.graph.ops.triton.attention_score import AttentionLaunch

Activation = Callable[[Tensor], Tensor]
MAX_STORED = 2**20  # weights of a GPU's edges and heads that are stored: faster where rows are short, but takes memory
MAX_WIDTH = 512  # channels, of all heads or of the state, that a tile of the kernels holds


def identity(x: Tensor) -> Tensor:
    """The score is the dot product."""
    return x


def exponential(x: Tensor) -> Tensor:
    """The score is the exponential of the dot product, as in the exponential kernel."""
    return torch.exp(x)


@checked
@dataclass(frozen=True)
class Leaky:
    """The score is the LeakyReLU of the dot product, with this slope below zero."""

    slope: Finite

    def __call__(self, x: Tensor) -> Tensor:
        return F.leaky_relu(x, self.slope)


@dataclass(frozen=True)
class PairScore:
    r"""A score that is a function of a dot product across each edge, :math:`s_{ij} = f(\langle p_i, q_j \rangle)`.

    ``p`` of the receivers and ``q`` of the senders are (n, h, k). ``activation`` is f, (m, h) -> (m, h), any function;
    :func:`identity`, :func:`exponential` and :class:`Leaky` have a fused kernel.
    """

    p: Tensor
    q: Tensor
    activation: Activation = identity

    def score(self, edges: Edges) -> Tensor:
        """(m, h)."""
        return self.activation(edge_dot(self.p, self.q, edges))


def squared_distance(p: Tensor, q: Tensor, *, start: Tensor | None = None) -> PairScore:
    r"""The pair whose dot product is :math:`c - \tfrac12 \|p_i - q_j\|^2`, by two more channels; ``start`` is c."""
    one = p.new_ones(()).expand(*p.shape[:-1], 1)
    p_norm, q_norm = (-0.5 * x.square().sum(-1, keepdim=True) for x in (p, q))
    p_norm = p_norm if start is None else p_norm + start
    return PairScore(torch.cat((p, p_norm, one), dim=-1), torch.cat((q, one, q_norm), dim=-1))


def attend(
    pair: PairScore, z: Tensor, edges: Edges, *, normalise: Normaliser, storage: torch.dtype | None = None
) -> Tensor:
    r"""Average of the state by attention weights, :math:`(A z)_i = \sum_j \frac1h \sum_{\eta} a_{ij\eta} z_j`.

    The weights :math:`a_{ij\eta}` are the pair's scores, linked and normalised. On a GPU one kernel computes it for
    sums over rows, two where sums over senders come first; the backward pass computes the scores again. On a small
    graph kernels over the edges and a sparse product are faster, and store a few numbers an edge and head. There
    ``storage`` is a shorter type for the values that are read along edges; sums keep their precision. On a CPU with
    numba, loops over rows compute it and keep the weights of all heads for the backward pass.

    Shapes:
        ``pair`` (n, h, k), ``z`` (n, d) -> (n, d).
    """
    if not is_fused(pair, z, edges, normalise):
        return aggregate(normalise(pair.score(edges), edges).mean(-1), z, edges)
    if storage is None and edges.num_edges * pair.p.shape[1] <= MAX_STORED:
        from beltrami.graph.ops.edge_weights import fused_weights

        weights = fused_weights(pair, edges, normalise=normalise)
        if weights is not None:
            return aggregate(weights, z, edges)
    inputs = (pair.p, pair.q, z, pair.activation, edges, normalise, storage)
    if is_compiling():
        from beltrami.graph.ops.attention_operator import fused

        return fused(*inputs)
    out: Tensor = _Attend.apply(*inputs)  # type: ignore[no-untyped-call]
    return out


def is_fused(pair: PairScore, z: Tensor, edges: Edges, normalise: Normaliser) -> bool:
    """Whether the fused kernels compute this attention; not for unknown functions or a batch of ``torch.func.vmap``."""
    backend = dispatch.attention_backend(z)
    return (
        backend is not None
        and (is_compiling() or (debug_unwrap(z) is z and debug_unwrap(pair.p) is pair.p))
        and (pair.activation in (identity, exponential) or isinstance(pair.activation, Leaky))
        and type(normalise) in (Rows, Columns, Both)
        and normalise.link in (softmax_link, squareplus_link)
        and (edges.weight is None or not edges.weight.requires_grad)
        and (backend == "numba" or max(pair.p.shape[1] * pair.p.shape[2], z.shape[1]) <= MAX_WIDTH)
        and min(z.numel(), pair.p.numel()) > 0
        and pair.p.dtype == z.dtype
    )


def _score_settings(f: Activation, normalise: Normaliser) -> dict[str, Any]:
    return {
        "activation": "leaky" if isinstance(f, Leaky) else f.__name__,
        "slope": f.slope if isinstance(f, Leaky) else 0.0,
        "squareplus": normalise.link is squareplus_link,
    }


def attention_launch(p: Tensor, f: Activation, edges: Edges, normalise: Normaliser) -> "AttentionLaunch":
    """Return the parameters of the Triton kernels for pairs (n, h, k)."""
    from beltrami.graph.ops.triton.attention_score import AttentionLaunch

    weight = None if edges.weight is None else edges.weight.contiguous()
    settings = _score_settings(f, normalise)
    return AttentionLaunch(**settings, weight=weight, heads=p.shape[1], channels=p.shape[2], dtype=p.dtype)


class _Attend(Function):
    @staticmethod
    def forward(
        ctx: Any, p: Tensor, q: Tensor, z: Tensor, f: Activation, edges: Edges, normalise: Normaliser, storage: Any
    ) -> Tensor:
        ctx.f, ctx.edges, ctx.normalise, ctx.storage = f, edges, normalise, storage
        ctx.by_numba = dispatch.attention_backend(z) == "numba"
        forward = _forward_by_numba if ctx.by_numba else _forward_by_triton
        out: Tensor
        ctx.launch, out, *saved = forward(f, p, q, z, edges, normalise, storage)
        ctx.save_for_backward(p, q, z, *saved)
        return out

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor | None, ...]:
        p, q, z, *saved = ctx.saved_tensors
        if torch.is_grad_enabled():  # the kernels have no second derivative; plain operations have
            gradients = _differentiable_gradients(ctx, grad[0], p, q, z)
        elif ctx.by_numba:
            gradients = ctx.launch.gradients(ctx.edges, [x.contiguous() for x in (p, q, z, grad[0])], saved)
        else:
            from beltrami.graph.ops.triton import attention_backward

            stored = [x.to(ctx.storage or x.dtype).contiguous() for x in (p, q, z, grad[0])]
            gradients = attention_backward.gradients(ctx.launch, ctx.edges, stored, (saved[0], saved[1]))
        return (*gradients, None, None, None, None)


def _forward_by_numba(
    f: Activation, p: Tensor, q: Tensor, z: Tensor, edges: Edges, normalise: Normaliser, storage: Any
) -> tuple[Any, ...]:
    """Settings of the loops, the averages, and tensors for the backward pass."""
    from beltrami.graph.ops.numba_attention import AttentionLoops

    loops = AttentionLoops(**_score_settings(f, normalise), sides=type(normalise).__name__)
    return loops, *loops.attend(p.contiguous(), q.contiguous(), z.contiguous(), edges)


def _forward_by_triton(
    f: Activation, p: Tensor, q: Tensor, z: Tensor, edges: Edges, normalise: Normaliser, storage: Any
) -> tuple[Any, ...]:
    """Settings of the kernels, the averages, and the totals of receivers and senders."""
    from beltrami.graph.ops.triton import attention_forward

    launch = attention_launch(p, f, edges, normalise)
    stored = [x.to(storage or x.dtype).contiguous() for x in (p, q, z)]
    if isinstance(normalise, Rows):
        return launch, *attention_forward.attend_rows(launch, edges.rows, *stored), None
    columns = attention_forward.log_sums(launch, edges.columns, stored[1], stored[0])
    totals: tuple[Tensor | None, Tensor] = (None, columns)
    if isinstance(normalise, Both):
        totals = (0.5 * attention_forward.log_sums(launch, edges.rows, *stored[:2]), 0.5 * columns)
    out = attention_forward.weighted_sum(launch, edges.rows, stored[0], stored[1], totals, stored[2])
    return launch, out, *totals


def _differentiable_gradients(ctx: Any, g: Tensor, *inputs: Tensor) -> tuple[Tensor | None, ...]:
    """Gradients by plain operations, with an autograd graph. Views separate the inputs: q may be computed from z."""
    p, q, z = (x.view_as(x) for x in inputs)
    weights = ctx.normalise(PairScore(p, q, ctx.f).score(ctx.edges), ctx.edges).mean(-1)
    wanted = [x for x, needed in zip((p, q, z), ctx.needs_input_grad, strict=False) if needed]
    found = iter(torch.autograd.grad(aggregate(weights, z, ctx.edges), wanted, g, create_graph=True))
    return tuple(next(found) if needed else None for needed in ctx.needs_input_grad[:3])
