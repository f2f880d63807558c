"""Message passing as a flow."""

from torch import Tensor, nn

from beltrami.diffusivity import RandomWalk
from beltrami.flow.base import Flow, FunctionField
from beltrami.graph import Edges


class MessageFlow(Flow):
    r"""The general equation of message passing, whose linear case is diffusion.

    .. math:: \frac{\partial Z}{\partial t} = \Psi(Z)

    An Euler step is the layer with a residual connection. Nothing is assumed of :math:`\Psi`, neither stability nor
    conservation. The flow has no diffusivity; its attribute reports uniform weights.

    Args:
        layer: :math:`\Psi`, called as ``layer(z, edge_index)``, such as a layer of PyG that keeps the width of ``z``.
            It does not receive the edge weights.

    Shapes:
        ``z`` (n, d) -> (n, d).
    """

    def __init__(self, layer: nn.Module) -> None:
        super().__init__(RandomWalk())
        self.layer = layer

    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> FunctionField:
        return FunctionField(lambda t, z: self.layer(z, edges.edge_index), tuple(self.layer.parameters()))


class NodewiseLayer(nn.Module):
    """A layer for :class:`MessageFlow` that applies ``module``, (n, d) -> (n, d), and ignores the edges."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, z: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.module(z)
        return out
