"""BeltramiConv: the flow as a layer, and the evolution by attention that it shares with BLEND."""

from torch import Tensor, nn

from beltrami.arguments import Count, Positive, checked
from beltrami.diffusivity import Diffusivity, ScaledDot, WithEdgeFeatures
from beltrami.flow import BeltramiFlow, Coupling, LinearFlow, Source
from beltrami.graph import Edges, as_edges
from beltrami.model.auto_capture import AutoCapture, is_capturable
from beltrami.model.coder import reset_parameters
from beltrami.model.evolution import Evolution
from beltrami.model.inputs import check_edge_attr
from beltrami.scheme import RK4, ConstantSteps, Exponential, Scheme, TimeStepping
from beltrami.stencil import Stencil

HEADS = 4
FROZEN_SCHEME = Exponential(rtol=1e-4, atol=1e-4)
LIVE_SCHEME = Scheme(RK4(), ConstantSteps(1.0))


@checked
class BeltramiConv(nn.Module):
    r"""The Beltrami flow as a layer that keeps the number of channels, for networks in the manner of PyG.

    .. math:: x \mapsto z(T), \qquad \frac{\partial z_i}{\partial t} = \sum_j a(z_i, z_j) (z_j - z_i), \quad z(0) = x

    A longer ``time`` T reaches further, as more layers would, with the same parameters. Put a linear layer before and
    after it, as it mixes no channels.

    Args:
        channels: width of ``x``.
        time: terminal time T.
        heads: of the default attention, the scaled dot product; 4 by default.
        edge_dim: columns of the edge features in the score of the default attention; None for none.
        diffusivity: another attention, in place of ``heads`` and ``edge_dim``.
        frozen: whether the attention is computed once, at the start; else at every evaluation, which costs more.
        source: a learned source, beta z(0), against oversmoothing at long times.
        coupling: a learned sign and strength of the neighbours' influence, for graphs whose neighbours tend to differ.
        stencil: rewires the graph; by default it is taken as it is.
        scheme: the time stepping; by default ``Exponential`` if frozen, else steps of RK4 of length 1.
        capture: on a GPU, a layer that is called again and again on the same graph captures its passes as CUDA graphs,
            unless this is False; None leaves out layers with parts that are not of this library or torch.

    Shapes:
        ``x`` (n, channels), ``edge_index`` (2, m) or as for :func:`~beltrami.graph.as_edges`, ``edge_weight`` (m,),
        ``edge_attr`` (m, edge_dim) -> (n, channels).
    """

    def __init__(
        self,
        channels: Count,
        *,
        time: Positive = 1.0,
        heads: Count | None = None,
        edge_dim: Count | None = None,
        diffusivity: Diffusivity | None = None,
        frozen: bool = True,
        source: Source | None = None,
        coupling: Coupling | None = None,
        stencil: Stencil | None = None,
        scheme: TimeStepping | None = None,
        capture: bool | None = None,
    ) -> None:
        super().__init__()
        self.channels, self.capture, self._auto_capture = channels, capture, AutoCapture()
        a = attention(channels, heads=heads, edge_dim=edge_dim, diffusivity=diffusivity)
        self.evolution = attention_evolution(
            a, time=time, frozen=frozen, source=source, coupling=coupling, stencil=stencil, scheme=scheme
        )
        self.edge_dim = edge_dim_of(self.evolution)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Edges,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        if x.dim() != 2 or x.shape[1] != self.channels:
            raise ValueError(f"`x` must have shape (nodes, {self.channels}); got {tuple(x.shape)}.")
        check_edge_attr(self.edge_dim, edge_attr)
        edges = as_edges(edge_index, num_nodes=len(x), weight=edge_weight, features=edge_attr)
        if self.capture is False or self.evolution.synchronises or not is_capturable(edges):
            z: Tensor = self.evolution(x, edges)
            return z
        return self._auto_capture(self, lambda x: self.evolution(x, edges), x, graph=edges, force=self.capture is True)

    def reset_parameters(self) -> None:
        """Draw all parameters again."""
        reset_parameters(self)

    def __repr__(self) -> str:
        features = f", edge_dim={self.edge_dim}" if self.edge_dim else ""
        return f"BeltramiConv({self.channels}, {self.evolution.summary}{features})"


def attention(
    channels: int, *, heads: int | None, edge_dim: int | None, diffusivity: Diffusivity | None
) -> Diffusivity:
    """Return ``diffusivity``, or by default the scaled dot product, with a term of edge features if they have
    ``edge_dim`` columns."""
    if diffusivity is not None and (heads is not None or edge_dim is not None):
        raise ValueError(
            "`heads` and `edge_dim` are settings of the default attention, and `diffusivity` replaces it: give them to "
            "the diffusivity, `WithEdgeFeatures(diffusivity, edge_dim, heads=...)`."
        )
    if diffusivity is not None:
        return diffusivity
    heads = HEADS if heads is None else heads
    dot = ScaledDot(channels, heads * -(-channels // heads), heads=heads)
    return dot if edge_dim is None else WithEdgeFeatures(dot, edge_dim, heads=heads)


def attention_evolution(
    diffusivity: Diffusivity,
    *,
    time: float,
    frozen: bool,
    source: Source | None,
    coupling: Coupling | None,
    stencil: Stencil | None,
    scheme: TimeStepping | None,
) -> Evolution:
    """Return the evolution by the Beltrami flow of a diffusivity, with the arguments of :class:`BeltramiConv`."""
    flow = (LinearFlow if frozen else BeltramiFlow)(diffusivity, source=source, coupling=coupling)
    if scheme is None:
        scheme = FROZEN_SCHEME if frozen else LIVE_SCHEME
    return Evolution(flow, scheme=scheme, time=time, stencil=stencil)


def edge_dim_of(evolution: Evolution) -> int:
    """Return how many columns of edge features the attention of an evolution takes; 0 for none."""
    return max((part.edge_dim for part in evolution.modules() if isinstance(part, WithEdgeFeatures)), default=0)
