"""BLEND: encode, evolve, decode."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from beltrami.errors import check_matrix
from beltrami.graph import Edges, Sparse
from beltrami.model.coder import Decoder, Encoder
from beltrami.model.dropout import Dropout
from beltrami.model.evolution import Evolution, Evolved
from beltrami.scheme import Stats


@dataclass(frozen=True)
class Inputs:
    """What a model runs on, checked: features (n, f) and positions (n, p), dense or sparse, and the graph."""

    x: Tensor | Sparse
    edges: Edges
    pos: Tensor | Sparse | None = None


@dataclass(frozen=True)
class Output:
    """Class scores (n, classes), and the evolution they came from."""

    logits: Tensor
    evolved: Evolved

    @property
    def cost(self) -> Tensor:
        """The running cost, to be added to the loss."""
        return self.evolved.cost

    @property
    def stats(self) -> Stats:
        """What the solve took; backward counts are in once ``backward`` has run."""
        return self.evolved.stats


class BLEND(nn.Module):
    r"""Beltrami neural diffusion.

    .. math:: z(0) = (\phi(u_{in}), \psi(x_{in})), \quad z(T) = z(0) + \int_0^T \frac{\partial z}{\partial t} dt,
        \quad y = \xi(z(T))

    Args:
        psi: feature encoder.
        evolution: the flow, its stencil and its scheme.
        xi: decoder.
        phi: position encoder; None for a flow of features alone.
        batch_norm: normalise each channel of z(0) over the nodes.
        node_dropout: share of the nodes whose features start at zero while training, the others scaled up: what is
            left of a node then comes from its neighbours.

    Shapes:
        ``x`` (n, features), ``edge_index`` (2, m), ``pos`` (n, positions) -> (n, classes). ``x`` and ``pos`` may be
        sparse. In a loop, build ``Edges`` and ``Sparse`` once and pass them instead.
    """

    def __init__(
        self,
        psi: Encoder,
        evolution: Evolution,
        xi: Decoder,
        *,
        phi: Encoder | None = None,
        batch_norm: bool = False,
        node_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.psi, self.phi, self.evolution, self.xi = psi, phi, evolution, xi
        self.node_dropout = Dropout(node_dropout, rows=True)
        self.norm = nn.BatchNorm1d(xi.linear.in_features) if batch_norm else None

    def forward(self, x: Tensor | Sparse, edge_index: Tensor | Edges, pos: Tensor | Sparse | None = None) -> Tensor:
        return self.run(self.prepare(x, edge_index, pos)).logits

    def prepare(self, x: Tensor | Sparse, edge_index: Tensor | Edges, pos: Tensor | Sparse | None = None) -> Inputs:
        """Check the inputs and bring them into the form of the hot path: do it once before a loop over :meth:`run`."""
        x = _checked(x, "x", columns=self.psi.linear.in_features)
        n = x.shape[0]
        edges = edge_index if isinstance(edge_index, Edges) else Edges.build(edge_index, num_nodes=n)
        if edges.num_nodes != n:
            raise ValueError(f"`x` has {n} rows where the graph has {edges.num_nodes} nodes.")
        if self.phi is None and pos is not None:
            raise ValueError("this model has no position encoder phi: leave `pos` out, or build it with `phi`.")
        if self.phi is not None and pos is None:
            raise ValueError("this model has a position encoder phi: pass `pos`, or build it without `phi`.")
        return Inputs(
            x=x,
            edges=edges,
            pos=None
            if self.phi is None or pos is None
            else _checked(pos, "pos", rows=n, columns=self.phi.linear.in_features),
        )

    def run(self, inputs: Inputs) -> Output:
        """As :meth:`forward` on prepared inputs, with the running cost and the statistics of the solve."""
        evolved = self.evolution.evolve(self.encode(inputs), inputs.edges)
        return Output(self.xi(evolved.z), evolved)

    def encode(self, inputs: Inputs) -> Tensor:
        """z(0), positions first."""
        z = self.node_dropout(self.psi(inputs.x))
        if self.phi is not None:
            z = torch.cat((self.phi(inputs.pos), z), dim=-1)
        z0: Tensor = z if self.norm is None else self.norm(z)
        return z0

    def logits_along(self, inputs: Inputs, ts: Sequence[float], *, nodes: Tensor | None = None) -> Tensor:
        """Class scores at each of the times ``ts``, increasing from 0, of all nodes or those of a mask or index.

        Shapes:
            -> (len(ts), n, classes).
        """
        ys = self.evolution.trajectory(self.encode(inputs), inputs.edges, ts).ys
        logits: Tensor = self.xi(ys if nodes is None else ys[:, nodes])
        return logits

    @torch.no_grad()
    def attention_spread(self, inputs: Inputs) -> float:
        """How far the diffusivities at z(0) are from uniform; 0 for exactly uniform."""
        z = self.encode(inputs)
        return self.evolution.flow.diffusivity.spread(z, self.evolution.stencil(z, inputs.edges))


def _checked(x: Tensor | Sparse, name: str, *, columns: int, rows: int | None = None) -> Tensor | Sparse:
    if isinstance(x, Sparse):
        expected = (x.shape[0] if rows is None else rows, columns)
        if x.shape != expected:
            raise ValueError(f"`{name}` has shape {x.shape} where {expected} is expected.")
        if not bool(torch.isfinite(x.values).all()):
            raise ValueError(f"`{name}` holds values that are NaN or infinite: clean or impute them first.")
        return x
    check_matrix(x, name=name, rows=rows, columns=columns)
    return x if x.layout == torch.strided else Sparse.of(x)
