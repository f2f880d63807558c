"""Message passing of any kind as a flow."""

from torch import Tensor, nn

from beltrami.diffusivity import RandomWalk
from beltrami.flow.base import Flow, VectorField
from beltrami.graph import Edges


class MessageFlow(Flow):
    r"""The general equation of message passing, of which diffusion is the linear kind.

    .. math:: \frac{\partial Z}{\partial t} = \Psi(Z)

    An Euler step is the layer with a residual connection. Nothing is known of :math:`\Psi`: neither that it is stable
    nor that it keeps anything. Asked for its diffusivity it has none of its own, and shows uniform weights.

    Args:
        layer: :math:`\Psi`, called as ``layer(z, edge_index)``, such as a layer of PyG that keeps the width of ``z``.
            Weights of the edges are not handed to it.

    Shapes:
        ``z`` (n, d) -> (n, d).
    """

    def __init__(self, layer: nn.Module) -> None:
        super().__init__(RandomWalk())
        self.layer = layer

    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> "MessageField":
        return MessageField(self.layer, edges)


class MessageField(VectorField):
    """The vector field of :class:`MessageFlow` on a graph."""

    def __init__(self, layer: nn.Module, edges: Edges) -> None:
        self.layer, self.edges = layer, edges

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(self.layer.parameters())

    def __call__(self, t: float, z: Tensor) -> Tensor:
        out: Tensor = self.layer(z, self.edges.edge_index)
        return out


class Pointwise(nn.Module):
    """A layer without messages: every node by itself, whatever the edges.

    Args:
        module: what is done at each node, (n, d) -> (n, d).
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, z: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.module(z)
        return out
