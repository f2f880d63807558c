"""An explanation: the margin of a prediction, and the shares of nodes and edges in it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch
from torch import Tensor

Method = Literal["exact", "integrated gradients", "linearised"]
METHODS: tuple[Method, ...] = ("exact", "integrated gradients", "linearised")  # the mean has the last that occurs


@dataclass(frozen=True)
class Margin:
    """The number that is explained: the logit ``predicted`` minus the logit ``other``, or the logit alone for None."""

    predicted: int
    other: int | None

    @staticmethod
    def of(
        logits: Tensor, *, predicted: int | None = None, other: int | None = None, exclusive: bool = True
    ) -> "Margin":
        """Return the margin at ``logits`` (classes,) of the largest one to the next, or of those that are named.

        Without ``exclusive`` classes, as for labels of which a node has several, or for a single output, the number is
        the logit of one output alone.
        """
        count = len(logits)
        for name, chosen in (("predicted", predicted), ("other", other)):
            if chosen is not None and not 0 <= chosen < count:
                raise ValueError(f"`{name}` must be a class from 0 to {count - 1}; got {chosen}.")
        order = logits.argsort(descending=True, stable=True).tolist()
        predicted = order[0] if predicted is None else predicted
        if other is None and exclusive and count > 1:
            other = next(c for c in order if c != predicted)
        if other == predicted:
            raise ValueError(f"`other` must differ from the predicted class; got {other} for both.")
        return Margin(predicted, other)

    def __call__(self, logits: Tensor) -> Tensor:
        """Return the margin, (..., classes) -> (...)."""
        return logits[..., self.predicted] - (0 if self.other is None else logits[..., self.other])


class NodeShare(NamedTuple):
    node: int
    share: float


class EdgeShare(NamedTuple):
    """The share of the edge j -> i."""

    j: int
    i: int
    share: float


@dataclass(frozen=True, eq=False)
class Agreement:
    """Labelled nodes among the contributing ones, largest share first, by whether they have the predicted label."""

    agree: tuple[NodeShare, ...]
    disagree: tuple[NodeShare, ...]


@dataclass(frozen=True, eq=False)
class Explanation:
    """The margin at a node as a sum: ``constant`` + the sum of ``node_shares`` + ``remainder``.

    Args:
        node: the node whose prediction is explained.
        predicted: its predicted class; ``other`` is the class that it is compared with, None for a single output.
        constant: the margin that the decoder, or the model, gives at zero.
        method: how shares are defined, see :mod:`beltrami.predict.explain`.
        node_shares: (n,), in double precision.
        edge_index: (2, m), the edges j -> i of the graph that the model uses, each once.
        edge_shares: (m,), or None for a model whose edges have no weights that multiply states.
    """

    node: int
    predicted: int
    other: int | None
    margin: float
    constant: float
    remainder: float
    method: Method
    node_shares: Tensor
    edge_index: Tensor
    edge_shares: Tensor | None

    def top_nodes(self, k: int) -> list[NodeShare]:
        """Return the k nodes with the largest absolute shares, without those of share zero."""
        return self._listed(_largest(self.node_shares, k))

    def top_edges(self, k: int) -> list[EdgeShare]:
        """Return the k edges with the largest absolute shares; self-loops, which connect no two nodes, are left out."""
        if self.edge_shares is None:
            return []
        j, i = self.edge_index
        top = _largest(torch.where(j == i, 0.0, self.edge_shares), k)
        return [EdgeShare(int(j[e]), int(i[e]), float(self.edge_shares[e])) for e in top]

    def contributing(self, cover: float = 0.9) -> Tensor:
        """Return the fewest nodes whose absolute shares have ``cover`` of the sum of all, largest first."""
        if not 0 < cover <= 1:
            raise ValueError(f"`cover` must be above 0 and at most 1; got {cover}.")
        order = _largest(self.node_shares, len(self.node_shares))
        reached = self.node_shares[order].abs().cumsum(0)
        return order[: int((reached < cover * reached[-1]).sum()) + 1] if len(order) else order

    def agreement(self, y: Tensor, labelled: Tensor, *, cover: float = 0.9) -> Agreement:
        """Return which nodes among :meth:`contributing` have a label, and whether it is the predicted one.

        ``y`` (n,) has the class of each node, or (n, labels) a mask; it is read where the mask ``labelled`` (n,) is
        true. The explained node itself is left out.
        """
        y, labelled = y.cpu(), labelled.cpu()
        nodes = self.contributing(cover)
        nodes = nodes[labelled[nodes] & (nodes != self.node)]
        same = y[nodes] == self.predicted if y.dim() == 1 else y[nodes, self.predicted].bool()
        return Agreement(tuple(self._listed(nodes[same])), tuple(self._listed(nodes[~same])))

    def hops(self) -> Tensor:
        """Return the number of edges on a shortest path from each node to the explained one, (n,); -1 for no path."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        (j, i), n = self.edge_index.numpy(), len(self.node_shares)
        graph = csr_array((torch.ones(len(j)).numpy(), (i, j)), shape=(n, n))
        distance = torch.from_numpy(dijkstra(graph, indices=[self.node], unweighted=True)[0])
        return torch.where(distance.isinf(), -1, distance).long()

    def _listed(self, nodes: Tensor) -> list[NodeShare]:
        return [NodeShare(*each) for each in zip(nodes.tolist(), self.node_shares[nodes].tolist(), strict=True)]

    @staticmethod
    def mean(each: "Sequence[Explanation]") -> "Explanation":
        """Return the explanation of the mean of the logits of several models, from theirs of the same margin."""
        if not each:
            raise ValueError("the mean of explanations needs at least one.")
        if len({(one.node, one.predicted, one.other, len(one.node_shares)) for one in each}) > 1:
            raise ValueError("explanations to average must be of the same node, `predicted` and `other`: pass both.")
        count, weighted = len(each), [one.edge_shares for one in each if one.edge_shares is not None]
        edge_index, edge_shares = merge_edges(
            [one.edge_index for one in each],
            [shares / count for shares in weighted] if len(weighted) == count else None,
            num_nodes=len(each[0].node_shares),
        )
        return replace(
            each[0],
            margin=sum(one.margin for one in each) / count,
            constant=sum(one.constant for one in each) / count,
            remainder=sum(one.remainder for one in each) / count,
            method=max((one.method for one in each), key=METHODS.index),
            node_shares=torch.stack([one.node_shares for one in each]).mean(0),
            edge_index=edge_index,
            edge_shares=edge_shares,
        )


def merge_edges(
    indices: Sequence[Tensor], shares: Sequence[Tensor] | None, *, num_nodes: int
) -> tuple[Tensor, Tensor | None]:
    """Return the edges of several graphs, (2, m) each, each edge once, and the sums of their shares, (m,)."""
    j, i = torch.cat(list(indices), dim=1)
    keys, place = (i * num_nodes + j).unique(return_inverse=True)
    edge_index = torch.stack((keys % num_nodes, keys // num_nodes))
    if shares is None:
        return edge_index, None
    return edge_index, torch.zeros(len(keys), dtype=torch.float64).index_add(0, place, torch.cat(list(shares)))


def _largest(values: Tensor, k: int) -> Tensor:
    """Return the indices of the k largest absolute values, largest first, without zeros."""
    order = values.abs().argsort(descending=True, stable=True)[:k]
    return order[values[order] != 0]
