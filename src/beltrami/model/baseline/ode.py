"""GraphODE: the competitors that are differential equations too."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from beltrami.flow.base import VectorField
from beltrami.graph import Edges, SparseMatrix
from beltrami.model.baseline.base import Baseline, Layer
from beltrami.model.baseline.frame import Frame
from beltrami.model.classifier import Inputs, Output
from beltrami.model.coder import Decoder, Encoder
from beltrami.scheme import Solution, TimeStepping, solve


class Bound(VectorField):
    """The right-hand side f(h) at one start and graph, and the tensors that it is differentiated by."""

    def __init__(self, f: Callable[[Tensor], Tensor], tensors: tuple[Tensor, ...]) -> None:
        self.f, self._tensors = f, tensors

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return self._tensors

    def __call__(self, t: float, z: Tensor) -> Tensor:
        return self.f(z)


class Field(nn.Module, ABC):
    """A learnable right-hand side."""

    @property
    @abstractmethod
    def synchronises(self) -> bool:
        """Whether to bind it or to evaluate it waits for the device."""

    @abstractmethod
    def bind(self, h0: Tensor, edges: Edges) -> Bound:
        """f from the state ``h0`` (n, d) on ``edges``."""


class Pointwise(Layer):
    """An encoder or decoder as a layer: every node by itself."""

    def __init__(self, coder: Encoder | Decoder) -> None:
        super().__init__()
        self.coder = coder

    def forward(self, x: Tensor | SparseMatrix, edges: Edges) -> Tensor:
        out: Tensor = self.coder(x)
        return out


class GraphODE(Baseline):
    r"""A network between whose first and last layer the depth is continuous.

    .. math:: H(0) = F(X), \quad \frac{dH}{dt} = f(H), \quad Y = G(H(T))

    Args:
        frame: widths and the graph.
        first: F.
        field: f.
        last: G.
        scheme: the time stepping.
        time: T.
    """

    def __init__(
        self, frame: Frame, first: Layer, field: Field, last: Layer, *, scheme: TimeStepping, time: float
    ) -> None:
        super().__init__(frame)
        if not 0 < time < float("inf"):
            raise ValueError(f"GraphODE needs a positive, finite terminal `time`; got {time}.")
        self.first, self.field, self.last = first, field, last
        self.scheme, self.terminal = scheme, time

    @property
    def time(self) -> float:
        return self.terminal

    @property
    def synchronises(self) -> bool:
        return self.scheme.synchronises or self.field.synchronises

    def run(self, inputs: Inputs) -> Output:
        solution = self._solve(inputs, (0.0, self.time))
        logits = self.last(solution.ys[-1], inputs.edges)
        return Output(logits, logits.new_zeros(()), (solution.stats,))

    def logits_along(self, inputs: Inputs, ts: Sequence[float], *, nodes: Tensor | None = None) -> Tensor:
        ys = self._solve(inputs, ts).ys
        along = [self.last(y, inputs.edges) for y in ys]
        return torch.stack(along if nodes is None else [logits[nodes] for logits in along])

    def attention_spread(self, inputs: Inputs) -> float:
        """0: nothing is learned on the edges."""
        return 0.0

    def _solve(self, inputs: Inputs, ts: Sequence[float]) -> Solution:
        h0 = self.first(inputs.x, inputs.edges)
        f = self.field.bind(h0, inputs.edges)
        return solve(f, h0, ts, self.scheme, f.tensors)
