"""The interface that training needs of a model, BLEND or a baseline."""

import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.compiler import is_compiling

from beltrami.arguments import checked
from beltrami.errors import check_matrix
from beltrami.flow import Cost
from beltrami.graph import Edges, SparseMatrix
from beltrami.graph.edges import warn_if_directed
from beltrami.model.coder import Matrix
from beltrami.scheme import Stats


@checked
@dataclass(frozen=True)
class Inputs:
    """The checked inputs of a model: features (n, f) and positions (n, p), dense or sparse, and the graph."""

    x: Matrix
    edges: Edges
    pos: Matrix | None = None
    given: Edges | None = None  # the graph before the model rewired it

    @property
    def graph(self) -> int:
        """The fingerprint of the graph as it was given."""
        return (self.edges if self.given is None else self.given).fingerprint


@dataclass(frozen=True)
class Fitted:
    """What a training found out for a model: the time at which the flow stops, and the graph it was fitted on."""

    time: float
    graph: int  # its fingerprint


class OtherGraphWarning(UserWarning):
    """A fitted model is used on another graph than that of its training."""


@dataclass(frozen=True)
class Output:
    """Class scores (n, classes), the running cost to add to the loss, and the statistics of each solve."""

    logits: Tensor
    cost: Tensor
    solves: tuple[Stats, ...] = ()

    @property
    def stats(self) -> Stats:
        """The statistics of all solves together; backward counts are included once ``backward`` has run."""
        return Stats.total(self.solves)


class Classifier(nn.Module, ABC):
    """A model that maps the features of all nodes, a graph and positions to class scores of every node.

    ``x`` (n, features), ``edge_index`` (2, m), ``pos`` (n, positions) -> (n, classes). ``positions`` is 0 for a model
    without them; ``time`` is the terminal time T, 0 for a model without time. ``x`` and ``pos`` may be sparse. In a
    loop, build ``Edges`` and ``SparseMatrix`` once and pass them instead.

    In evaluation mode a fitted model stops at the time that its training chose, which is part of its ``state_dict``; in
    training mode, and before it is fitted, it stops at T. It warns on another graph than that of its training.
    """

    features: int
    positions: int
    num_classes: int
    time: float
    fitted: Fitted | None = None

    def forward(self, x: Matrix, edge_index: Tensor | Edges, pos: Matrix | None = None) -> Tensor:
        inputs = self.prepare(x, edge_index, pos)
        if self.training or self.fitted is None:
            return self.run(inputs).logits
        if not is_compiling() and inputs.graph != self.fitted.graph:
            warnings.warn(
                "this model was fitted on another graph, of other nodes, edges, directions or weights: its scores on "
                "this one have not been validated.",
                OtherGraphWarning,
                stacklevel=3,
            )
        return self.logits_along(inputs, (0.0, self.fitted.time))[-1]

    def get_extra_state(self) -> Tensor:
        """Return what training found, as bytes, for the ``state_dict``."""
        text = b"" if self.fitted is None else json.dumps(asdict(self.fitted)).encode()
        return torch.tensor(list(text), dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        """Read what training found from a ``state_dict``."""
        text = bytes(state.tolist())
        found = Fitted(**json.loads(text)) if text else None
        if found is not None and not (isinstance(found.time, float) and 0 <= found.time < float("inf")):
            raise ValueError(f"the time at which the flow stops is {found.time!r}")
        self.fitted = found

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        # Weights of earlier versions do not hold what training found.
        state_dict.setdefault(f"{prefix}_extra_state", torch.empty(0, dtype=torch.uint8))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    @property
    @abstractmethod
    def synchronises(self) -> bool:
        """Whether a training step synchronises with the device; if not, it can be captured in a CUDA graph."""

    @property
    def costs(self) -> Sequence[Cost]:
        """The running costs of a training step; empty for none."""
        return ()

    @property
    def rewires(self) -> bool:
        """Whether the graph depends on the model's state, so that stacked models cannot share it."""
        return False

    @checked
    def prepare(self, x: Matrix, edge_index: Tensor | Edges, pos: Matrix | None = None) -> Inputs:
        """Check and convert the inputs, features and positions to the model's type; do it once before a loop over
        :meth:`run`. A :class:`DirectedGraphWarning` tells of edges in one direction only, once for each tensor."""
        like = next((weight for weight in self.parameters() if weight.is_floating_point()), None)
        x = _checked_matrix(x, "x", like, columns=self.features)
        n = x.shape[0]
        if isinstance(edge_index, Edges):
            edges = edge_index
        else:
            edges = Edges.cached(edge_index, num_nodes=n)
            warn_if_directed(edge_index, edges)
        if edges.num_nodes != n:
            raise ValueError(f"`x` has {n} rows where the graph has {edges.num_nodes} nodes.")
        if pos is None and self.positions:
            raise ValueError(f"this model takes {self.positions} positions: pass `pos`, or build it without positions.")
        if pos is not None and not self.positions:
            raise ValueError("this model takes no positions: leave `pos` out, or build it with positions.")
        if pos is not None:
            pos = _checked_matrix(pos, "pos", like, rows=n, columns=self.positions)
        return replace(self.arrange(Inputs(x, edges, pos)), given=edges)

    def arrange(self, inputs: Inputs) -> Inputs:
        """Return checked inputs in the form that :meth:`run` expects."""
        return inputs

    @abstractmethod
    def run(self, inputs: Inputs) -> Output:
        """Return the scores on prepared inputs, with the running cost and the statistics of the solves."""

    @abstractmethod
    def logits_along(self, inputs: Inputs, ts: Sequence[float], *, nodes: Tensor | None = None) -> Tensor:
        """Return the class scores at times ``ts``, increasing from 0, (len(ts), n, classes); ``nodes`` selects some."""

    def attention_spread(self, inputs: Inputs) -> float:
        """Return the standard deviation of the learned edge weights relative to uniform ones; 0 if none are learned."""
        return 0.0


def _checked_matrix(x: Matrix, name: str, like: Tensor | None, *, columns: int, rows: int | None = None) -> Matrix:
    """Return an input of a model in the type of its weights ``like``, after checking device, shape and values; sparse
    tensors become ``SparseMatrix``."""
    values = x.values if isinstance(x, SparseMatrix) else x
    if like is not None and values.device != like.device:
        raise ValueError(f"`{name}` is on {values.device} and the model on {like.device}: move one with `.to(...)`.")
    if like is not None and values.dtype != like.dtype and values.dtype.is_floating_point:
        x = x.with_values(values.to(like.dtype)) if isinstance(x, SparseMatrix) else x.to(like.dtype)
    if isinstance(x, SparseMatrix):
        expected = (x.shape[0] if rows is None else rows, columns)
        if x.shape != expected:
            raise ValueError(f"`{name}` has shape {x.shape} where {expected} is expected.")
        if not (is_compiling() or bool(torch.isfinite(x.values).all())):
            raise ValueError(f"`{name}` holds values that are NaN or infinite: clean or impute them first.")
        return x
    check_matrix(x, name=name, rows=rows, columns=columns)
    return x if x.layout == torch.strided else SparseMatrix.of(x)
