"""BLEND: encode, evolve, decode."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from beltrami.arguments import Share, checked
from beltrami.flow import Cost
from beltrami.model.classifier import Classifier, Inputs, Output
from beltrami.model.coder import Decoder, Dropout, Encoder
from beltrami.model.evolution import Evolution


@checked
class BLEND(Classifier):
    r"""Beltrami neural diffusion: an encoder, a flow, and a decoder.

    .. math:: z(0) = (\phi(u_{in}), \psi(x_{in})), \quad z(T) = z(0) + \int_0^T \frac{\partial z}{\partial t} dt,
        \quad y = \xi(z(T))

    Without ``phi`` it is a flow of features alone. ``batch_norm`` normalises each channel of z(0) over the nodes.
    ``node_dropout`` is the share of nodes whose features are set to zero in training, the others scaled up, so that
    these nodes are predicted from their neighbours.
    """

    def __init__(
        self,
        psi: Encoder,
        evolution: Evolution,
        xi: Decoder,
        *,
        phi: Encoder | None = None,
        batch_norm: bool = False,
        node_dropout: Share = 0.0,
    ) -> None:
        super().__init__()
        self.psi, self.phi, self.evolution, self.xi = psi, phi, evolution, xi
        self.node_dropout = Dropout(node_dropout, rows=True)
        self.norm = nn.BatchNorm1d(xi.linear.in_features) if batch_norm else None
        self.features, self.positions = psi.linear.in_features, 0 if phi is None else phi.linear.in_features
        self.num_classes, self.time = xi.linear.out_features, evolution.time

    @property
    def synchronises(self) -> bool:
        remeshes = self.evolution.remesh is not None
        return self.evolution.scheme.synchronises or self.rewires or remeshes or bool(self.costs)

    @property
    def rewires(self) -> bool:
        return self.evolution.stencil.synchronises

    @property
    def costs(self) -> Sequence[Cost]:
        return self.evolution.costs

    def run(self, inputs: Inputs) -> Output:
        evolved = self.evolution.evolve(self.encode(inputs), inputs.edges)
        return Output(self.xi(evolved.z), evolved.cost, evolved.solves)

    def encode(self, inputs: Inputs) -> Tensor:
        """Return z(0), positions first."""
        z = self.node_dropout(self.psi(inputs.x))
        if self.phi is not None:
            z = torch.cat((self.phi(inputs.pos), z), dim=-1)
        z0: Tensor = z if self.norm is None else self.norm(z)
        return z0

    def logits_along(self, inputs: Inputs, ts: Sequence[float], *, nodes: Tensor | None = None) -> Tensor:
        ys = self.evolution.trajectory(self.encode(inputs), inputs.edges, ts).ys
        logits: Tensor = self.xi(ys if nodes is None else ys[:, nodes])
        return logits

    @torch.no_grad()
    def attention_spread(self, inputs: Inputs) -> float:
        z = self.encode(inputs)
        return self.evolution.flow.diffusivity.spread(z, self.evolution.stencil(z, inputs.edges))
