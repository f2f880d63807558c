"""A graph by parts: the edges of each part with its own rows and the rows of other parts that it reads."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from beltrami.distributed.communication import GhostExchange, PartedIndex
from beltrami.distributed.workers import Workers
from beltrami.graph import Edges


@dataclass(frozen=True, eq=False)
class PartGraph:
    """The edges of a part. Its nodes are its own ``rows``, then its ghosts."""

    edges: Edges
    rows: int
    incoming: Tensor  # the edges that enter own nodes, in the order of the whole graph


class PartedGraph:
    """A graph whose nodes are divided into parts, as a process sees it: the graphs of its own parts.

    A part has the edges that enter its nodes and, with ``senders``, those that leave them; then sums over all edges of
    an own node, entering or leaving, need no other part.

    Args:
        edges: the whole graph.
        part: the part of each node, (n,).
        senders: whether parts have the edges that leave their nodes.
    """

    def __init__(self, edges: Edges, part: Tensor, workers: Workers, *, senders: bool) -> None:
        parts = int(part.max()) + 1
        self.whole = edges
        self.nodes = PartedIndex.of(workers, part, parts)
        self.edges = PartedIndex.of(workers, part[edges.i], parts)  # by receivers
        chosen = [_edges_of(edges, part, unit, senders) for unit in range(parts)]
        ghosts = [_ghosts(edges, part, unit, each) for unit, each in enumerate(chosen)]
        self.exchange = GhostExchange(self.nodes, part, ghosts)
        self.parts = [self._part(unit, part, chosen[unit], ghosts[unit]) for unit in self.nodes.units]
        self._ghost_sizes = [len(ghosts[unit]) for unit in self.nodes.units]

    def split(self, x: Tensor) -> Sequence[Tensor]:
        """Return the rows of each own part, from those of all own parts."""
        parts: tuple[Tensor, ...] = x.split(self.nodes.own_sizes)
        return parts

    def extend(self, x: Tensor) -> list[Tensor]:
        """Return the rows of each own part followed by those of its ghosts, from the rows of all own parts."""
        ghosts = self.exchange(x).split(self._ghost_sizes)
        return [torch.cat(both) for both in zip(self.split(x), ghosts, strict=True)]

    def _part(self, unit: int, part: Tensor, chosen: Tensor, ghosts: Tensor) -> PartGraph:
        rows, whole = self.nodes.sizes[unit], self.whole
        number = torch.full((whole.num_nodes,), -1, device=part.device)
        own = (part == unit).nonzero()[:, 0]
        number[torch.cat((own, ghosts))] = torch.arange(len(own) + len(ghosts), device=part.device)
        index = torch.stack((number[whole.j[chosen]], number[whole.i[chosen]]))
        weight = None if whole.weight is None else whole.weight[chosen]
        edges = Edges.build(index, num_nodes=rows + len(ghosts), weight=weight)
        return PartGraph(edges, rows, edges.permutation[: int(edges.rows.ptr[rows])].argsort())


def _edges_of(edges: Edges, part: Tensor, unit: int, senders: bool) -> Tensor:
    """Return the numbers of the edges of a part."""
    inside = part[edges.i] == unit
    return (inside | (part[edges.j] == unit) if senders else inside).nonzero()[:, 0]


def _ghosts(edges: Edges, part: Tensor, unit: int, chosen: Tensor) -> Tensor:
    """Return the nodes of other parts on the edges of a part, by part and number."""
    nodes: Tensor = torch.cat((edges.j[chosen], edges.i[chosen])).unique()
    nodes = nodes[part[nodes] != unit]
    return nodes[part[nodes].argsort(stable=True)]
