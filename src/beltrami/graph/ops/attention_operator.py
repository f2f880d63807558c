"""Fused attention as a ``torch.library`` operator, for ``torch.compile``; see ``operators``.

The operator keeps its inputs only. Its gradient computes the sums of the forward pass again.
"""

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from beltrami.graph.edges import Edges
from beltrami.graph.normalise import Both, Columns, Normaliser, Rows, softmax_link, squareplus_link
from beltrami.graph.ops.attention import Activation, Leaky, _Attend, exponential, identity
from beltrami.graph.ops.operators import TAGS, csr_of, graph_of

ACTIVATIONS = {function.__name__: function for function in (identity, exponential)}
NORMALISERS: dict[str, type[Normaliser]] = {each.__name__: each for each in (Rows, Columns, Both)}


def fused(
    p: Tensor, q: Tensor, z: Tensor, f: Activation, edges: Edges, normalise: Normaliser, storage: torch.dtype | None
) -> Tensor:
    """Return the averages of :func:`~beltrami.graph.attend` by its kernels."""
    activation, slope = ("leaky", f.slope) if isinstance(f, Leaky) else (f.__name__, 0.0)
    names = [activation, type(normalise).__name__, "squareplus" if normalise.link is squareplus_link else "softmax"]
    out: Tensor = attend(p, q, z, edges.weight, *csr_of(edges), ".".join(names), slope, storage)
    return out


class _Context:
    """What an autograd function keeps for its backward pass."""

    saved_tensors: tuple[Tensor | None, ...]

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        self.saved_tensors = tensors


def _forward(
    p: Tensor, q: Tensor, z: Tensor, weight: Tensor | None, ptr: Tensor, index: Tensor, columns: int, names: str,
    slope: float, storage: torch.dtype | None,
) -> tuple[Tensor, _Context]:  # fmt: skip
    activation, normaliser, link = names.split(".")
    f = Leaky(slope) if activation == "leaky" else ACTIVATIONS[activation]
    edges = graph_of(ptr, index, columns, weight)
    normalise = NORMALISERS[normaliser](squareplus_link if link == "squareplus" else softmax_link)
    context = _Context()
    return _Attend.forward(context, p, q, z, f, edges, normalise, storage).contiguous(), context


@custom_op("beltrami::attend", mutates_args=(), tags=TAGS)
def attend(
    p: Tensor, q: Tensor, z: Tensor, weight: Tensor | None, ptr: Tensor, index: Tensor, columns: int, names: str,
    slope: float, storage: torch.dtype | None,
) -> Tensor:  # fmt: skip
    return _forward(p, q, z, weight, ptr, index, columns, names, slope, storage)[0]


@attend.register_fake
def _(
    p: Tensor, q: Tensor, z: Tensor, weight: Tensor | None, ptr: Tensor, index: Tensor, columns: int, names: str,
    slope: float, storage: torch.dtype | None,
) -> Tensor:  # fmt: skip
    return z.new_empty(z.shape)


@custom_op("beltrami::attend_backward", mutates_args=(), tags=TAGS)
def attend_backward(
    g: Tensor, p: Tensor, q: Tensor, z: Tensor, weight: Tensor | None, ptr: Tensor, index: Tensor, columns: int,
    names: str, slope: float, storage: torch.dtype | None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients by p, q and z."""
    with torch.no_grad():
        _, context = _forward(p, q, z, weight, ptr, index, columns, names, slope, storage)
        dp, dq, dz, *_ = (x for x in _Attend.backward(context, g) if x is not None)
    return dp.contiguous(), dq.contiguous(), dz.contiguous()


@attend_backward.register_fake
def _(
    g: Tensor, p: Tensor, q: Tensor, z: Tensor, weight: Tensor | None, ptr: Tensor, index: Tensor, columns: int,
    names: str, slope: float, storage: torch.dtype | None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    return p.new_empty(p.shape), q.new_empty(q.shape), z.new_empty(z.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:6])
    ctx.rest = inputs[6:]


def _differentiate(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
    return *attend_backward(g, *ctx.saved_tensors, *ctx.rest), *(None,) * 7


attend.register_autograd(_differentiate, setup_context=_save)
