"""The interface that training needs of a model, BLEND or a baseline."""

import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.compiler import is_compiling

from beltrami.arguments import checked
from beltrami.flow import Cost
from beltrami.graph import Edges, as_edges
from beltrami.graph.sparse_matrix import sparse_if_wide
from beltrami.model.auto_capture import AutoCapture, is_capturable
from beltrami.model.coder import Matrix
from beltrami.model.inputs import Inputs, check_edge_attr, checked_matrix, unpack
from beltrami.model.last_inputs import LastInputs
from beltrami.scheme import Stats

if TYPE_CHECKING:
    from torch_geometric.data import Data


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

    ``x`` (n, features), ``edge_index`` (2, m), ``edge_weight`` (m,), ``pos`` (n, positions), ``edge_attr`` (m,
    edge_dim) -> (n, classes). ``positions`` and ``edge_dim`` are 0 for a model without them; ``time`` is the terminal
    time T, 0 for a model without time. ``x`` and ``pos`` may be sparse, and ``edge_index`` in any form of
    :func:`~beltrami.graph.as_edges`. A PyG ``Data`` object may stand for all of them (:func:`unpack`). Tensors of
    earlier calls are checked and converted once. Dense features of at least 512 columns with fewer than 10% non-zeros
    are multiplied as a sparse matrix, which changes results by rounding.

    In evaluation mode a fitted model stops at the time that its training chose, which is part of its ``state_dict``; in
    training mode, and before it is fitted, it stops at T. It warns on another graph than that of its training.

    On a GPU a model that is called again and again with the same inputs captures its passes as CUDA graphs, which is
    several times faster on small graphs, unless ``capture`` is False. None leaves out models with parts that are not of
    this library or torch: True captures them too, which is right if their work depends on tensors and on attributes of
    modules alone.
    """

    features: int
    positions: int
    num_classes: int
    time: float
    edge_dim: int = 0
    fitted: Fitted | None = None
    capture: bool | None = None

    def __init__(self) -> None:
        super().__init__()
        self._last_inputs, self._auto_capture = LastInputs[Inputs](), AutoCapture()

    def forward(
        self,
        x: "Matrix | Data",
        edge_index: Tensor | Edges | None = None,
        edge_weight: Tensor | None = None,
        pos: Matrix | None = None,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        given: tuple[Any, ...] = (x, edge_index, edge_weight, pos, edge_attr)
        if edge_index is None:
            given = unpack(x, positions=self.positions, edge_dim=self.edge_dim)
        inputs = self._last_inputs(lambda x, *rest: self.prepare(sparse_if_wide(x), *rest), self, *given)
        if not self.training and self.fitted is not None and not is_compiling() and inputs.graph != self.fitted.graph:
            warnings.warn(
                "this model was fitted on another graph, of other nodes, edges, directions or weights: its scores on "
                "this one have not been validated.",
                OtherGraphWarning,
                stacklevel=3,
            )
        if self.capture is False or self.synchronises or inputs.needs_grad or not is_capturable(inputs.edges):
            return self._scores(inputs)
        return self._auto_capture(self, lambda: self._scores(inputs), graph=inputs, force=self.capture is True)

    def _scores(self, inputs: Inputs) -> Tensor:
        if self.training or self.fitted is None:
            return self.run(inputs).logits
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
    def prepare(
        self,
        x: Matrix,
        edge_index: Tensor | Edges,
        edge_weight: Tensor | None = None,
        pos: Matrix | None = None,
        edge_attr: Tensor | None = None,
    ) -> Inputs:
        """Check and convert the inputs, features and positions to the model's type; do it once before a loop over
        :meth:`run`. A :class:`DirectedGraphWarning` tells of edges in one direction only, once for each tensor."""
        like = next((weight for weight in self.parameters() if weight.is_floating_point()), None)
        x = checked_matrix(x, "x", like, columns=self.features)
        n = x.shape[0]
        check_edge_attr(self.edge_dim, edge_attr)
        edges = as_edges(edge_index, num_nodes=n, weight=edge_weight, features=edge_attr, warns=True)
        if edges.num_nodes != n:
            raise ValueError(f"`x` has {n} rows where the graph has {edges.num_nodes} nodes.")
        if pos is None and self.positions:
            raise ValueError(f"this model takes {self.positions} positions: pass `pos`, or build it without positions.")
        if pos is not None and not self.positions:
            raise ValueError("this model takes no positions: leave `pos` out, or build it with positions.")
        if pos is not None:
            pos = checked_matrix(pos, "pos", like, rows=n, columns=self.positions)
        return replace(self.arrange(Inputs(x, edges, pos)), given=edges)

    def arrange(self, inputs: Inputs) -> Inputs:
        """Return checked inputs in the form that :meth:`run` expects."""
        return inputs

    @abstractmethod
    def run(self, inputs: Inputs) -> Output:
        """Return the scores on prepared inputs, with the running cost and the statistics of the solves."""

    def run_at(self, inputs: Inputs, nodes: Tensor) -> Output:
        """Return the output of :meth:`run` with the scores of some nodes alone."""
        output = self.run(inputs)
        return replace(output, logits=output.logits[nodes])

    @abstractmethod
    def logits_along(self, inputs: Inputs, ts: Sequence[float], *, nodes: Tensor | None = None) -> Tensor:
        """Return the class scores at times ``ts``, increasing from 0, (len(ts), n, classes); ``nodes`` selects some."""

    def attention_spread(self, inputs: Inputs) -> float:
        """Return the standard deviation of the learned edge weights relative to uniform ones; 0 if none are learned."""
        return 0.0
