"""BLEND: encode, evolve, decode."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

import beltrami
from beltrami.arguments import Count, Natural, Positive, Share, checked
from beltrami.diffusivity import Diffusivity
from beltrami.flow import Cost, Coupling, Source
from beltrami.joint import Joint
from beltrami.model.classifier import Classifier, Output
from beltrami.model.coder import Decoder, Dropout, Encoder, reset_parameters
from beltrami.model.conv import attention, attention_evolution, edge_dim_of
from beltrami.model.evolution import Evolution
from beltrami.model.inputs import Inputs
from beltrami.scheme import TimeStepping
from beltrami.stencil import Stencil


@checked
class BLEND(Classifier):
    r"""Beltrami neural diffusion: an encoder, a flow, and a decoder.

    .. math:: z(0) = (\phi(u_{in}), \psi(x_{in})), \quad z(T) = z(0) + \int_0^T \frac{\partial z}{\partial t} dt,
        \quad y = \xi(z(T))

    Without positions it is a flow of features alone. :meth:`from_recipe` builds the network that ``beltrami train``
    trains, :meth:`from_parts` one of given parts.

    Args:
        in_channels: columns of the features.
        hidden_channels: feature channels of the flow.
        out_channels: classes, or other outputs.
        pos_channels: columns of the positions; 0 for none.
        pos_hidden_channels: positional channels of the flow.
        dropout: share of the entries dropped in training, of the inputs and of z(T).
        batch_norm: whether each channel of z(0) is normalised over the nodes; over those of all graphs of a batch.
        capture: False for no CUDA graphs, as for :class:`Classifier`.

    The others, ``time`` to ``scheme``, are those of :class:`~beltrami.model.BeltramiConv`; the state of the flow has
    positions in its first channels. Shapes: as for :class:`Classifier`.
    """

    def __init__(
        self,
        in_channels: Count,
        hidden_channels: Count,
        out_channels: Count,
        *,
        pos_channels: Natural = 0,
        pos_hidden_channels: Count = 16,
        time: Positive = 4.0,
        heads: Count | None = None,
        edge_dim: Count | None = None,
        diffusivity: Diffusivity | None = None,
        frozen: bool = True,
        source: Source | None = None,
        coupling: Coupling | None = None,
        stencil: Stencil | None = None,
        scheme: TimeStepping | None = None,
        dropout: Share = 0.5,
        batch_norm: bool = False,
        capture: bool | None = None,
    ) -> None:
        super().__init__()
        self.capture = capture
        joint = Joint(pos_hidden_channels if pos_channels else 0, hidden_channels)
        a = attention(joint.channels, heads=heads, edge_dim=edge_dim, diffusivity=diffusivity)
        self._compose(
            Encoder(in_channels, joint.feat, dropout=dropout),
            attention_evolution(
                a, time=time, frozen=frozen, source=source, coupling=coupling, stencil=stencil, scheme=scheme
            ),
            Decoder(joint.channels, out_channels, dropout=dropout),
            phi=Encoder(pos_channels, joint.pos, dropout=dropout) if pos_channels else None,
            batch_norm=batch_norm,
        )

    @classmethod
    @checked
    def from_parts(
        cls,
        psi: Encoder,
        evolution: Evolution,
        xi: Decoder,
        *,
        phi: Encoder | None = None,
        batch_norm: bool = False,
        node_dropout: Share = 0.0,
    ) -> "BLEND":
        """Return the network of an encoder of features, an evolution, a decoder and, with positions, their encoder.

        ``node_dropout`` is the share of nodes whose features are set to zero in training, the others scaled up, so that
        these nodes are predicted from their neighbours.
        """
        model = cls.__new__(cls)
        Classifier.__init__(model)
        model._compose(psi, evolution, xi, phi=phi, batch_norm=batch_norm, node_dropout=node_dropout)
        return model

    @classmethod
    @checked
    def from_recipe(
        cls,
        dataset: str,
        in_channels: Count,
        out_channels: Count,
        *,
        pos_channels: Natural = 0,
        recipe: str = "blend",
        protocol: str | None = None,
    ) -> "BLEND":
        """Return the network that ``beltrami train`` trains on a dataset, for inputs and outputs of these widths.

        ``pos_channels`` are the columns of the positions; for 0 it is the network without positions. ``recipe`` is one
        of blend, blend-distilled, blend-knn, blend-plain, paper, paper-knn, uniform and polyakov, ``protocol`` that of
        the split, ``planetoid`` for the published one. The recipe's positions, its changes of the input graph and its
        training are not part of the network.
        """
        found: BLEND = beltrami.build_recipe(
            dataset, in_channels, out_channels, pos_channels=pos_channels, recipe=recipe, protocol=protocol
        )
        return found

    def _compose(
        self,
        psi: Encoder,
        evolution: Evolution,
        xi: Decoder,
        *,
        phi: Encoder | None,
        batch_norm: bool,
        node_dropout: float = 0.0,
    ) -> None:
        self.psi, self.phi, self.evolution, self.xi = psi, phi, evolution, xi
        self.node_dropout = Dropout(node_dropout, rows=True)
        self.norm = nn.BatchNorm1d(xi.linear.in_features) if batch_norm else None
        self.features, self.positions = psi.linear.in_features, 0 if phi is None else phi.linear.in_features
        self.num_classes, self.time = xi.linear.out_features, evolution.time
        self.edge_dim = edge_dim_of(evolution)

    def reset_parameters(self) -> None:
        """Draw all parameters again; a fitted model is as before its training."""
        reset_parameters(self)
        self.fitted = None

    @property
    def synchronises(self) -> bool:
        return self.evolution.synchronises

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
        return self.evolution.flow.diffusivity.spread(z, self.evolution.mesh(z, inputs.edges))
