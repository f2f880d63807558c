"""The base of all baselines: their widths and graph, their inputs, networks without time, and fixed edge weights."""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from beltrami.arguments import Count, Share, checked
from beltrami.graph import Both, Edges, Normaliser, Rows, SparseMatrix
from beltrami.model.classifier import Classifier, Output
from beltrami.model.coder import Matrix
from beltrami.model.inputs import Inputs
from beltrami.stencil import Keep, Stencil

T = TypeVar("T")


@checked
@dataclass(frozen=True)
class Architecture:
    """The widths, dropout and graph of a baseline: ``width`` hidden channels of all heads together, ``positions``
    concatenated to the features, ``dropout`` of hidden values, a ``stencil`` that does not depend on the state."""

    features: Count
    num_classes: Count
    positions: int = 0
    width: Count = 64
    depth: Count = 2
    input_dropout: Share = 0.5
    dropout: Share = 0.5
    stencil: Stencil = field(default_factory=Keep)

    def __post_init__(self) -> None:
        if self.positions < 0:
            raise ValueError(f"Architecture needs `positions` at least 0; got {self.positions}.")
        if self.stencil.synchronises:
            why = f"{type(self.stencil).__name__} depends on the state of a flow"
            raise ValueError(f"a baseline has a fixed graph, and {why}: use a stencil such as Keep, Loops or TopK.")

    @property
    def channels(self) -> int:
        """The input channels of the first layer: features and positions."""
        return self.features + self.positions

    @property
    def layers(self) -> list[tuple[int, int, float]]:
        """Input channels, output channels and dropout before each layer."""
        widths = [self.channels, *[self.width] * (self.depth - 1), self.num_classes]
        dropouts = [self.input_dropout, *[self.dropout] * (self.depth - 1)]
        return [(*ends, dropout) for ends, dropout in zip(pairwise(widths), dropouts, strict=True)]


@checked
class Baseline(Classifier):
    """A network on features, with positions concatenated to them if it takes any, on a fixed graph."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture, self.num_classes = architecture, architecture.num_classes
        self.features, self.positions = architecture.features, architecture.positions

    def arrange(self, inputs: Inputs) -> Inputs:
        x = inputs.x if inputs.pos is None else concatenate(inputs.x, inputs.pos)
        no_state = torch.empty(x.shape[0], 0, device=inputs.edges.device)
        return Inputs(x, self.architecture.stencil(no_state, inputs.edges))


class DiscreteBaseline(Baseline):
    """A network with a fixed number of layers and no time; its scores are the same at all times."""

    time = 0.0

    @abstractmethod
    def scores(self, inputs: Inputs) -> Tensor:
        """Return the class scores of every node, (n, classes)."""

    @property
    def synchronises(self) -> bool:
        return False

    def run(self, inputs: Inputs) -> Output:
        logits = self.scores(inputs)
        return Output(logits, logits.new_zeros(()))

    def logits_along(self, inputs: Inputs, ts: Sequence[float], *, nodes: Tensor | None = None) -> Tensor:
        logits = self.scores(inputs) if nodes is None else self.scores(inputs)[nodes]
        return logits.expand(len(ts), *logits.shape)


def concatenate(x: Matrix, pos: Matrix) -> Matrix:
    """Concatenate features (n, f) and positions (n, p) to (n, f + p), sparse if one of them is."""
    if isinstance(x, Tensor) and isinstance(pos, Tensor):
        return torch.cat((x, pos), dim=1)
    return SparseMatrix.of(torch.cat((_to_coo(x), _to_coo(pos)), dim=1))


def _to_coo(x: Matrix) -> Tensor:
    if isinstance(x, SparseMatrix):
        x = torch.sparse_coo_tensor(torch.stack((x.rows.row, x.rows.index)).long(), x.values, x.shape)
    coo: Tensor = x.to_sparse_coo()
    return coo


def cached_per_graph(compute: Callable[..., T]) -> Callable[..., T]:
    """Decorate a function of a graph and hashable arguments: cache its results as long as the graph exists."""
    cache: WeakKeyDictionary[Edges, dict[Hashable, T]] = WeakKeyDictionary()

    def cached(edges: Edges, *arguments: Hashable) -> T:
        results = cache.setdefault(edges, {})
        if arguments not in results:
            results[arguments] = compute(edges, *arguments)
        return results[arguments]

    return cached


@cached_per_graph
def symmetric_weights(edges: Edges, dtype: torch.dtype) -> Tensor:
    r"""Return :math:`w_{ij} / \sqrt{d_i d_j}` on each edge, (m,), where d sums the edges' weights w."""
    return _normalised(Both(), edges, dtype)


@cached_per_graph
def mean_weights(edges: Edges, dtype: torch.dtype) -> Tensor:
    r"""Return :math:`w_{ij} / d_i` on each edge, (m,): the mean over neighbours."""
    return _normalised(Rows(), edges, dtype)


def _normalised(normaliser: Normaliser, edges: Edges, dtype: torch.dtype) -> Tensor:
    with torch.no_grad():
        return normaliser(torch.zeros(edges.num_edges, 1, dtype=dtype, device=edges.device), edges)[:, 0]
