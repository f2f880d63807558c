"""The interface of a stencil, stencils that do not depend on the state, and chains of stencils."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.compiler import is_compiling

from beltrami.arguments import checked
from beltrami.graph import Edges
from beltrami.stencil.rewire_operator import STENCILS, rewired_edges


class Stencil(ABC):
    """The graph of the flow, E' of eq. (7), from the state and the input graph.

    Stencils are frozen dataclasses: ``print`` shows their settings, and equal settings compare equal.
    """

    @property
    def synchronises(self) -> bool:
        """Whether the edges depend on the state, so that a call waits for the device."""
        return True

    @abstractmethod
    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        """Return the graph to diffuse on, from the state ``z`` (n, d) and the input graph."""


class Fixed(Stencil):
    """A stencil of the input graph alone; equal stencils share a cached result as long as the input graph exists."""

    def __new__(cls, *args: object, **kwargs: object) -> "Fixed":
        self = super().__new__(cls)
        STENCILS[id(self)] = self
        return self

    @property
    def synchronises(self) -> bool:
        return False

    @abstractmethod
    def rewire(self, edges: Edges) -> Edges:
        """Return the graph to diffuse on, from the input graph."""

    @checked
    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        if is_compiling():
            return edges if isinstance(self, Keep) else rewired_edges([self], z, edges)
        return self.rewired(edges)

    def rewired(self, edges: Edges) -> Edges:
        """Return the result of :meth:`rewire`, from the cache if it is known."""
        cache = _REWIRED.setdefault(edges, {})
        if self not in cache:
            rewired = self.rewire(edges)
            cache[self] = None if rewired is edges else rewired  # a value that is its own weak key is never freed
        return cache[self] or edges


_REWIRED: WeakKeyDictionary[Edges, dict[Fixed, Edges | None]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Keep(Fixed):
    """The input graph unchanged, E' = E."""

    def rewire(self, edges: Edges) -> Edges:
        return edges


@checked
@dataclass(frozen=True)
class Loops(Fixed):
    """The input graph with a self-loop on every node.

    A loop contributes nothing to z_j - z_i but counts in the normalisation by its ``weight``: the flow is slower by
    that share. Edges of an unweighted graph have weight one.
    """

    weight: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.weight < float("inf"):
            raise ValueError(f"Loops needs a positive, finite `weight`; got {self.weight}. For no loops, use `Keep()`.")

    def rewire(self, edges: Edges) -> Edges:
        return edges.with_loops(self.weight)


@dataclass(frozen=True)
class Complete(Fixed):
    """All n (n - 1) ordered pairs of different nodes, as in a Transformer without loops; for a few thousand nodes."""

    def rewire(self, edges: Edges) -> Edges:
        nodes = torch.arange(edges.num_nodes, device=edges.device)
        j, i = torch.cartesian_prod(nodes, nodes).T if edges.num_nodes > 1 else nodes.new_zeros(2, 0)
        return Edges.build(torch.stack((j, i))[:, j != i], num_nodes=edges.num_nodes)


@dataclass(frozen=True)
class Isolated(Fixed):
    """No edges, so that no node moves: the baseline that shows the effect of a graph."""

    def rewire(self, edges: Edges) -> Edges:
        return Edges.build(edges.edge_index[:, :0], num_nodes=edges.num_nodes)


@dataclass(frozen=True)
class Symmetric(Fixed):
    """Every edge in both directions, once, with the largest of the weights of its duplicates and of its reverse."""

    def rewire(self, edges: Edges) -> Edges:
        n = edges.num_nodes
        keys, place = torch.cat((edges.j * n + edges.i, edges.i * n + edges.j)).unique(return_inverse=True)
        weight = None
        if edges.weight is not None:
            both = edges.weight.repeat(2)
            weight = both.new_zeros(len(keys)).scatter_reduce(0, place, both, "amax")
        return Edges.build(torch.stack((keys // n, keys % n)), num_nodes=n, weight=weight)


@dataclass(frozen=True)
class Unweighted(Fixed):
    """The same edges without weights: ``Chain(TopK(64), Unweighted())``."""

    def rewire(self, edges: Edges) -> Edges:
        return edges if edges.weight is None else Edges.build(edges.edge_index, num_nodes=edges.num_nodes)


@checked
class Chain(Stencil):
    """Stencils applied one after the other: ``Chain(KNN(8, on=joint.u), Loops(1.0))``."""

    def __init__(self, *stencils: Stencil) -> None:
        self.stencils = stencils

    def __repr__(self) -> str:
        return f"Chain({', '.join(map(repr, self.stencils))})"

    @property
    def synchronises(self) -> bool:
        return any(stencil.synchronises for stencil in self.stencils)

    @checked
    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        fixed = [stencil for stencil in self.stencils if isinstance(stencil, Fixed)]
        if is_compiling() and len(fixed) == len(self.stencils):  # one operator: weights may be missing in between
            return rewired_edges(fixed, z, edges)
        for stencil in self.stencils:
            edges = stencil(z, edges)
        return edges
