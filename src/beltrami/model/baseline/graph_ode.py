"""Baselines that are differential equations: CGNN, GDE and GODE."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from beltrami.arguments import checked
from beltrami.flow import FunctionField
from beltrami.graph import Edges, aggregate
from beltrami.model.baseline.base import Architecture, Baseline, symmetric_weights
from beltrami.model.baseline.layered import GCNLayer
from beltrami.model.classifier import Output
from beltrami.model.coder import Decoder, Encoder, Matrix
from beltrami.model.inputs import Inputs
from beltrami.scheme import Solution, TimeStepping, solve

ALPHA = 0.95  # initial value of CGNN's alpha and scales m


@checked
class GraphODE(Baseline):
    r"""A network with a differential equation between its first and its last layer.

    .. math:: H(0) = F(X), \quad \frac{dH}{dt} = f(H), \quad Y = G(H(T))

    F is ``first``, f is ``field``, G is ``last`` and T is ``time``. F and G are called as ``layer(x, edges)``. A field
    ``synchronises`` if binding or evaluating it waits for the device.
    """

    def __init__(
        self,
        architecture: Architecture,
        first: nn.Module,
        field: "CGNNField | ConvolutionField",
        last: nn.Module,
        *,
        scheme: TimeStepping,
        time: float,
    ) -> None:
        super().__init__(architecture)
        if not 0 < time < float("inf"):
            raise ValueError(f"GraphODE needs a positive, finite terminal `time`; got {time}.")
        self.first, self.field, self.last, self.scheme, self.time = first, field, last, scheme, time

    def extra_repr(self) -> str:
        return f"stencil={self.architecture.stencil!r}\nscheme={self.scheme!r}\ntime={self.time!r}"

    @property
    def synchronises(self) -> bool:
        return self.scheme.synchronises or self.field.synchronises

    def run(self, inputs: Inputs) -> Output:
        solution = self._solve(inputs, (0.0, self.time))
        logits = self.last(solution.ys[-1], inputs.edges)
        return Output(logits, logits.new_zeros(()), (solution.stats,))

    def logits_along(self, inputs: Inputs, ts: Sequence[float], *, nodes: Tensor | None = None) -> Tensor:
        along = [self.last(y, inputs.edges) for y in self._solve(inputs, ts).ys]
        return torch.stack(along if nodes is None else [logits[nodes] for logits in along])

    def _solve(self, inputs: Inputs, ts: Sequence[float]) -> Solution:
        h0 = self.first(inputs.x, inputs.edges)
        f = self.field.bind(h0, inputs.edges)
        return solve(f, h0, ts, self.scheme, f.tensors)


class CoderLayer(nn.Module):
    """An encoder or decoder as a layer; it ignores the edges."""

    def __init__(self, coder: Encoder | Decoder) -> None:
        super().__init__()
        self.coder = coder

    def forward(self, x: Matrix, edges: Edges) -> Tensor:
        return self.coder(x)  # type: ignore[no-any-return]


class CGNNField(nn.Module):
    r"""The equation of continuous graph neural networks (Xhonneux et al. 2020).

    .. math:: \frac{dH}{dt} = (A - I) H + H (W - I) + H(0), \qquad
        A = \tfrac12 (I + D^{-1/2} \bar A D^{-1/2})\, \alpha, \quad W = U \operatorname{diag}(m)\, U^\top

    Learned are :math:`\alpha \in (0, 1)`, :math:`m \in (0, 1)` and the orthogonal :math:`U = e^{S - S^\top}`;
    :math:`\bar A` is the adjacency matrix of the edges. All eigenvalues are negative, so that H(t) converges. Without
    ``mixing``, W = I.
    """

    def __init__(self, width: int, *, mixing: bool = True) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.logit(torch.tensor(ALPHA)))
        self.skew = nn.Parameter(0.1 * torch.randn(width, width)) if mixing else None
        self.scale = nn.Parameter(torch.logit(torch.full((width,), ALPHA))) if mixing else None
        self.synchronises = mixing  # the matrix exponential reads the norm of its argument

    def bind(self, h0: Tensor, edges: Edges) -> FunctionField:
        half = 0.5 * torch.sigmoid(self.alpha)
        a, w = symmetric_weights(edges, h0.dtype), self.mixing_matrix()

        def dh_dt(t: float, h: Tensor) -> Tensor:
            dh = half * (h + aggregate(a, h, edges)) - h + h0
            return dh if w is None else dh + h @ w - h

        return FunctionField(dh_dt, (half, h0) if w is None else (half, h0, w))

    def mixing_matrix(self) -> Tensor | None:
        """Return W, (width, width); None for the identity."""
        if self.skew is None or self.scale is None:
            return None
        u = torch.linalg.matrix_exp(self.skew - self.skew.t())
        return (u * torch.sigmoid(self.scale)) @ u.t()  # type: ignore[no-any-return]


class ConvolutionField(nn.Module):
    r"""``depth`` graph convolutions, each followed by tanh, :math:`f(H) = \tanh(F_k(\dots \tanh(F_1(H))))`.

    A unit Euler step, :math:`H + f(H)`, is a residual layer. Dropout would change the equation at every evaluation.
    """

    synchronises = False

    def __init__(self, width: int, *, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(GCNLayer(width, width) for _ in range(depth))

    def bind(self, h0: Tensor, edges: Edges) -> FunctionField:
        def dh_dt(t: float, h: Tensor) -> Tensor:
            for layer in self.layers:
                h = torch.tanh(layer(h, edges))
            return h

        return FunctionField(dh_dt, tuple(self.parameters()))


class ReLULayer(nn.Module):
    """A layer followed by ReLU."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Matrix, edges: Edges) -> Tensor:
        return torch.relu(self.layer(x, edges))


@checked
def cgnn(architecture: Architecture, *, scheme: TimeStepping, time: float, mixing: bool = True) -> GraphODE:
    """Return a CGNN (Xhonneux et al. 2020); ``mixing`` for the version with weights."""
    first = CoderLayer(Encoder(architecture.channels, architecture.width, dropout=architecture.input_dropout))
    last = CoderLayer(Decoder(architecture.width, architecture.num_classes, dropout=architecture.dropout))
    field = CGNNField(architecture.width, mixing=mixing)
    return GraphODE(architecture, first, field, last, scheme=scheme, time=time)


@checked
def gde(architecture: Architecture, *, scheme: TimeStepping, time: float) -> GraphODE:
    """Return a GDE (Poli et al. 2019): between the two layers of a GCN, a third one in continuous time."""
    return _between_convolutions(architecture, 1, scheme, time)


@checked
def gode(architecture: Architecture, *, scheme: TimeStepping, time: float) -> GraphODE:
    """Return a GODE (Zhuang et al. 2020): a GCN of ``architecture.depth`` layers in continuous time."""
    return _between_convolutions(architecture, architecture.depth, scheme, time)


def _between_convolutions(architecture: Architecture, depth: int, scheme: TimeStepping, time: float) -> GraphODE:
    first = ReLULayer(GCNLayer(architecture.channels, architecture.width, dropout=architecture.input_dropout))
    field = ConvolutionField(architecture.width, depth=depth)
    last = GCNLayer(architecture.width, architecture.num_classes, dropout=architecture.dropout)
    return GraphODE(architecture, first, field, last, scheme=scheme, time=time)
