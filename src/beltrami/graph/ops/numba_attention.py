r"""Attention on the CPU by numba: scores, weights and averages of all heads in loops over rows, with gradients.

A weight is stored as its logarithm for the softmax, :math:`a = e^{w - r_i - c_j}`, and as itself for squareplus,
:math:`a = w r_i c_j`, which needs no exponential. r and c are scales of receivers and senders: the logarithm or the
inverse of the sum of weights, or of its root for ``Both``. The derivative by the logarithm of a weight is, with
:math:`t = a b` and :math:`b_{ij} = \langle g_i, z_j \rangle / h`, for sums over rows
:math:`t_{ij} - a_{ij} \sum_k t_{ik}`; for sums over columns the sum is the sender's; for both, it is
:math:`t_{ij}` minus half of each sum times the weight divided by that side's sum of weights alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from beltrami.graph.edges import Edges
from beltrami.graph.ops.numba import fast_jit, run

ACTIVATIONS, EXPONENTIAL, LEAKY = ("identity", "exponential", "leaky"), 1, 2
LARGE = 1e6  # beyond this, sqrt(s^2 + 4) is |s| to twelve digits, and s^2 might overflow


@fast_jit
def _activate(x, gain, activation, slope):  # type: ignore[no-untyped-def]
    one, below = x.dtype.type(1), x.dtype.type(slope)
    if activation == EXPONENTIAL:
        for c in range(len(x)):
            x[c] = math.exp(x[c])
            gain[c] = x[c]
    elif activation == LEAKY:
        for c in range(len(x)):
            gain[c] = one if x[c] > 0 else below
            x[c] *= gain[c]
    else:
        gain[:] = 1


@fast_jit
def _squareplus(x, gain):  # type: ignore[no-untyped-def]
    kind = x.dtype.type
    half, one, four, large = kind(0.5), kind(1), kind(4), kind(LARGE)
    for c in range(len(x)):
        size = abs(x[c])
        near = min(size, large)
        root = max(math.sqrt(near * near + four), size)
        weight = half * (size + root)
        x[c] = weight if x[c] > 0 else one / weight  # without cancellation
        gain[c] /= root


@fast_jit
def _scales(ptr, edge, weight, logarithms, root, out, first, last):  # type: ignore[no-untyped-def]
    """Logarithm or inverse of the sum of weights of each row, or with ``root`` of its square root."""
    heads, share, top = weight.shape[1], weight.dtype.type(0.5 if root else 1), np.empty_like(out[0])
    for i in range(first, last):
        out[i] = 0
        top[:] = -np.inf
        for entry in range(ptr[i], ptr[i + 1] if logarithms else ptr[i]):
            for h in range(heads):
                top[h] = max(top[h], weight[edge[entry], h])
        for entry in range(ptr[i], ptr[i + 1]):
            e = edge[entry]
            for h in range(heads):
                out[i, h] += math.exp(weight[e, h] - top[h]) if logarithms else weight[e, h]
        for h in range(heads):
            if logarithms:
                out[i, h] = (top[h] + math.log(out[i, h])) * share
            else:
                out[i, h] = 1 / (math.sqrt(out[i, h]) if root else out[i, h])


@fast_jit
def _scores(  # type: ignore[no-untyped-def]
    ptr, index, edge, p, q, measure, activation, slope, squareplus, root, out, gain, scales, first, last
):  # fmt: skip
    """Weights before normalisation, or their logarithms unless ``squareplus``; and their scales, unless empty."""
    heads, width, zero = p.shape[1], p.shape[2], p.dtype.type(0)
    for i in range(first, last):
        for entry in range(ptr[i], ptr[i + 1]):
            j = index[entry]
            for h in range(heads):
                total = zero  # a loop from the second channel on would leave a remainder behind the vectors
                for k in range(width):
                    total += p[i, h, k] * q[j, h, k]
                out[entry, h] = total
    begin, end = ptr[first], ptr[last]
    _activate(out[begin:end].ravel(), gain[begin:end].ravel(), activation, slope)
    if squareplus:
        _squareplus(out[begin:end].ravel(), gain[begin:end].ravel())
    for entry in range(begin, end if len(measure) else begin):
        for h in range(heads):
            out[entry, h] = out[entry, h] * measure[entry] if squareplus else out[entry, h] + measure[entry]
    if len(scales):
        _scales(ptr, edge, out, not squareplus, root, scales, first, last)


@fast_jit
def _share(weight, scale, other, logarithms):  # type: ignore[no-untyped-def]
    return math.exp(weight - scale - other) if logarithms else weight * scale * other


@fast_jit
def _averages(ptr, index, weight, logarithms, rows, columns, z, mean, out, first, last):  # type: ignore[no-untyped-def]
    """Normalised weights, in place for one scale, their means over heads, and the averages of z."""
    heads, kind = weight.shape[1], weight.dtype.type
    neutral, part = kind(0 if logarithms else 1), kind(1 / heads)
    for i in range(first, last):
        out[i] = 0
        for entry in range(ptr[i], ptr[i + 1]):
            j, total = index[entry], kind(0)
            for h in range(heads):
                row = rows[i, h] if len(rows) else neutral
                column = columns[j, h] if len(columns) else neutral
                share = _share(weight[entry, h], row, column, logarithms)
                total += share
                if len(rows) == 0 or len(columns) == 0:
                    weight[entry, h] = share
            total *= part
            mean[entry] = total
            for k in range(z.shape[1]):
                out[i, k] += total * z[j, k]


@fast_jit
def _products(ptr, index, edge, weight, logarithms, own, other, left, right, out, sums, mean, out_state, first, last):  # type: ignore[no-untyped-def]
    """t = a b on the edges, (m, h), its sums over rows, and the weighted sums of ``right``, unless these have no
    channels: both read the same rows of ``right``. Without scales, the weights are normalised."""
    heads, kind = weight.shape[1], weight.dtype.type
    zero, part = kind(0), kind(1 / heads)
    for i in range(first, last):
        sums[i] = 0
        out_state[i] = 0
        for entry in range(ptr[i], ptr[i + 1]):
            j, e = index[entry], edge[entry]
            b = zero
            for k in range(left.shape[1]):
                b += left[i, k] * right[j, k]
            for k in range(out_state.shape[1]):
                out_state[i, k] += mean[e] * right[j, k]
            b *= part
            for h in range(heads):
                w = weight[e, h]
                out[e, h] = b * (_share(w, own[i, h], other[j, h], logarithms) if len(own) else w)
                sums[i, h] += out[e, h]


@fast_jit
def _pull(ptr, index, edge, t, other, mean, state, out, out_state, first, last):  # type: ignore[no-untyped-def]
    """Gradient of the row's own side of the pairs, and the weighted sum of a state, which may have no channels."""
    heads, width = t.shape[1], other.shape[2]
    for i in range(first, last):
        out[i] = 0
        if state.shape[1]:
            out_state[i] = 0
        for entry in range(ptr[i], ptr[i + 1]):
            j, e = index[entry], edge[entry]
            for h in range(heads):
                value = t[e, h]
                for k in range(width):
                    out[i, h, k] += value * other[j, h, k]
            for k in range(state.shape[1]):
                out_state[i, k] += mean[e] * state[j, k]


@fast_jit
def _pull_one(  # type: ignore[no-untyped-def]
    ptr, index, edge, weight, gain, left, right, t, sums, mean, out_state, other, out, first, last
):  # fmt: skip
    """The derivative t by the dot products, of weights divided by sums over these rows; then :func:`_pull`."""
    _products(ptr, index, edge, weight, False, sums[:0], sums[:0], left, right, t, sums, mean, out_state, first, last)
    for i in range(first, last):
        for entry in range(ptr[i], ptr[i + 1]):
            e = edge[entry]
            for h in range(t.shape[1]):
                t[e, h] -= weight[e, h] * sums[i, h]
                if len(gain):
                    t[e, h] *= gain[e, h]
    _pull(ptr, index, edge, t, other, mean, left[:, :0], out, out_state, first, last)


@fast_jit
def _pull_both(  # type: ignore[no-untyped-def]
    ptr, index, edge, gain, weight, logarithms, rows, columns, t, other_sums, other, mean, out, first, last
):  # fmt: skip
    """The same of weights divided by the roots of both sums, from t = a b and its sums over columns."""
    half, sums, nothing = t.dtype.type(0.5), np.empty_like(t[0]), other[:, 0, :0]
    for i in range(first, last):
        sums[:] = 0
        for entry in range(ptr[i], ptr[i + 1]):
            for h in range(t.shape[1]):
                sums[h] += t[edge[entry], h]
        for entry in range(ptr[i], ptr[i + 1]):
            j, e = index[entry], edge[entry]
            for h in range(t.shape[1]):
                by_row = _share(weight[e, h], rows[i, h], rows[i, h], logarithms)
                by_column = _share(weight[e, h], columns[j, h], columns[j, h], logarithms)
                t[e, h] -= half * (by_row * sums[h] + by_column * other_sums[j, h])
                if len(gain):
                    t[e, h] *= gain[e, h]
    _pull(ptr, index, edge, t, other, mean, nothing, out, nothing, first, last)


@dataclass(frozen=True)
class AttentionLoops:
    """An attention on the CPU: ``activation`` with its ``slope``, and the normaliser's link and ``sides``, which are
    "Rows", "Columns" or "Both". All tensors that it takes are contiguous."""

    activation: str
    slope: float
    squareplus: bool
    sides: str

    def attend(self, p: Tensor, q: Tensor, z: Tensor, edges: Edges) -> tuple[Tensor, ...]:
        """Averages (n, d), and what :meth:`gradients` reads: the weights of each head, the derivative of their
        logarithms by the dot product (empty if it is one), means over heads, and the scales for both sides."""
        (n, heads, width), row, column = p.shape, edges.rows, edges.columns
        empty, root, logarithms = p.new_empty(0, heads), self.sides == "Both", not self.squareplus
        measure = empty[:, 0] if edges.weight is None else edges.weight.to(z.dtype)
        measure = measure.log() if logarithms else measure
        weight, mean, out = p.new_empty(edges.num_edges, heads), p.new_empty(edges.num_edges), torch.empty_like(z)
        gain = empty if logarithms and self.activation == "identity" else torch.empty_like(weight)
        rows, columns = (p.new_empty(0 if self.sides == other else n, heads) for other in ("Columns", "Rows"))
        score = (measure, ACTIVATIONS.index(self.activation), self.slope, self.squareplus, root)
        run(_scores, row, row.index, row.edge, p, q, *score, weight, gain, rows, work=heads * width)
        if len(columns):
            run(_scales, column, column.edge, weight, logarithms, root, columns, work=heads)
        run(_averages, row, row.index, weight, logarithms, rows, columns, z, mean, out, work=heads + z.shape[1])
        return out, weight, gain, mean, rows, columns

    def gradients(self, edges: Edges, inputs: Sequence[Tensor], saved: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Gradients of p, q (n, h, k) and z (n, d), from p, q, z and the gradient of the averages."""
        (p, q, z, g), (weight, gain, mean, of_rows, of_columns) = inputs, saved
        dp, dq, dz, t = (torch.empty_like(x) for x in (p, q, z, weight))
        sums, nothing, work = p.new_empty(p.shape[:2]), z.new_empty(len(z), 0), p[0].numel() + 2 * z.shape[1]
        rows, columns = ((x, x.index, x.edge) for x in (edges.rows, edges.columns))
        if self.sides == "Rows":
            run(_pull_one, *rows, weight, gain, g, z, t, sums, mean, nothing, q, dp, work=work)
            run(_pull, *columns, t, p, mean, g, dq, dz, work=work)
        elif self.sides == "Columns":
            run(_pull_one, *columns, weight, gain, z, g, t, sums, mean, dz, p, dq, work=work)
            run(_pull, *rows, t, q, mean, nothing, dp, nothing, work=work)
        else:
            logarithms = not self.squareplus
            run(_products, *columns, weight, logarithms, of_columns, of_rows, z, g, t, sums, mean, dz, work=work)
            run(_pull_both, *rows, gain, weight, logarithms, of_rows, of_columns, t, sums, q, mean, dp, work=work)
            run(_pull, *columns, t, p, mean, nothing, dq, nothing, work=work)
        return dp, dq, dz
