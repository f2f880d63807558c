"""Baseline: what the paper's competitors have in common, and those that are layers one after the other."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from beltrami.flow import Cost
from beltrami.graph import Edges, SparseMatrix
from beltrami.model.baseline.frame import Frame
from beltrami.model.classifier import Classifier, Inputs, Output, checked, checked_edges


class Layer(nn.Module, ABC):
    """A map of node values that may look along the edges.

    Shapes:
        ``x`` (n, channels), dense or :class:`SparseMatrix` -> (n, out_channels).
    """

    @abstractmethod
    def forward(self, x: Tensor | SparseMatrix, edges: Edges) -> Tensor: ...


class Attentive(Layer):
    """A layer that learns how much each edge counts."""

    @abstractmethod
    def relative_weights(self, x: Tensor | SparseMatrix, edges: Edges) -> Tensor:
        """The learned weights, each divided by what it would be if all edges counted alike, (m, h)."""


class Baseline(Classifier):
    """A competitor: features, with positions beside them where it takes any, on a graph that stands still."""

    def __init__(self, frame: Frame) -> None:
        super().__init__()
        self.frame = frame

    @property
    def num_classes(self) -> int:
        return self.frame.num_classes

    @property
    def costs(self) -> Sequence[Cost]:
        return ()

    def prepare(
        self, x: Tensor | SparseMatrix, edge_index: Tensor | Edges, pos: Tensor | SparseMatrix | None = None
    ) -> Inputs:
        x = checked(x, "x", columns=self.frame.features)
        n, positions = x.shape[0], self.frame.positions
        edges = checked_edges(edge_index, num_nodes=n)
        if pos is None and positions:
            raise ValueError(f"this model takes {positions} positions: pass `pos`, or build it with `positions=0`.")
        if pos is not None and not positions:
            raise ValueError("this model takes no positions: leave `pos` out, or build it with `positions`.")
        if pos is not None:
            x = beside(x, checked(pos, "pos", rows=n, columns=positions))
        return Inputs(x, self.frame.stencil(torch.empty(n, 0, device=edges.device), edges))


class Timeless(Baseline):
    """A competitor of a number of layers: it has no time, and its scores are the same at all times."""

    @abstractmethod
    def scores(self, inputs: Inputs) -> Tensor:
        """Class scores of every node, (n, classes)."""

    @property
    def time(self) -> float:
        return 0.0

    @property
    def synchronises(self) -> bool:
        return False

    def run(self, inputs: Inputs) -> Output:
        logits = self.scores(inputs)
        return Output(logits, logits.new_zeros(()))

    def logits_along(self, inputs: Inputs, ts: Sequence[float], *, nodes: Tensor | None = None) -> Tensor:
        logits = self.scores(inputs) if nodes is None else self.scores(inputs)[nodes]
        return logits.expand(len(ts), *logits.shape)


class Layered(Timeless):
    r"""Layers one after the other with an activation in between, :math:`x^{(k+1)} = F_k(\sigma(x^{(k)}))`.

    Args:
        frame: widths and the graph.
        layers: in order; the last gives the class scores.
        activation: :math:`\sigma`.
    """

    def __init__(
        self, frame: Frame, layers: Sequence[Layer], *, activation: Callable[[Tensor], Tensor] = F.relu
    ) -> None:
        super().__init__(frame)
        self.layers, self.activation = nn.ModuleList(layers), activation

    @torch.no_grad()
    def attention_spread(self, inputs: Inputs) -> float:
        """Of the first layer; its heads averaged."""
        first = self.layers[0]
        if not isinstance(first, Attentive) or not inputs.edges.num_edges:
            return 0.0
        return float(first.relative_weights(inputs.x, inputs.edges).mean(-1).std(correction=0))

    def scores(self, inputs: Inputs) -> Tensor:
        first, *others = self.layers
        x: Tensor = first(inputs.x, inputs.edges)
        for layer in others:
            x = layer(self.activation(x), inputs.edges)
        return x


def beside(x: Tensor | SparseMatrix, pos: Tensor | SparseMatrix) -> Tensor | SparseMatrix:
    """Features and positions side by side, (n, f) and (n, p) -> (n, f + p); sparse where one of them is."""
    if isinstance(x, Tensor) and isinstance(pos, Tensor):
        return torch.cat((x, pos), dim=1)
    return SparseMatrix.of(torch.cat((_coordinates(x), _coordinates(pos)), dim=1))


def _coordinates(x: Tensor | SparseMatrix) -> Tensor:
    matrix: Tensor
    if isinstance(x, Tensor):
        matrix = x.to_sparse_coo()
    else:
        matrix = torch.sparse_coo_tensor(torch.stack((x.rows.row, x.rows.index)).long(), x.values, x.shape)
    return matrix
