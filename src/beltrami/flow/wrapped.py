"""Flows made from another flow (mixed channels, polynomials, frozen positions) or from a layer of messages."""

import torch
from torch import Tensor, nn

from beltrami.arguments import Count, checked
from beltrami.diffusivity import EdgeWeights, RandomWalk
from beltrami.flow.base import Flow, FunctionField
from beltrami.graph import Edges
from beltrami.joint import Joint


class WrappedFlow(Flow):
    """A flow made from another flow, whose diffusivity it has."""

    def __init__(self, flow: Flow) -> None:
        nn.Module.__init__(self)  # without the diffusivity, which is registered once, in the wrapped flow
        self.flow = flow

    @property
    def diffusivity(self) -> EdgeWeights:  # type: ignore[override]  # read-only
        return self.flow.diffusivity


@checked
class _MixingFlow(WrappedFlow):
    """A flow with a matrix W, (channels, channels), initially the identity, at which it is the wrapped flow."""

    def __init__(self, flow: Flow, channels: Count) -> None:
        super().__init__(flow)
        self.channels, self.weight = channels, nn.Parameter(torch.eye(channels))

    def reset_parameters(self) -> None:
        nn.init.eye_(self.weight)


class OnsagerFlow(_MixingFlow):
    r"""Onsager diffusion, where a matrix acts across the channels.

    .. math:: \frac{\partial Z}{\partial t} = Q(Z) Z W, \qquad Q(Z) = A(Z) - I

    The wrapped flow is Q(Z) Z. Where W has eigenvalues of negative real part, diffusion runs backwards in their
    channels. For W(t), see :class:`TimeVarying`.
    """

    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> FunctionField:
        f, w = self.flow.bind(z, edges, start=start), self.weight
        return FunctionField(lambda t, z: f(t, z) @ w, (*f.tensors, w))


class MixedFlow(_MixingFlow):
    r"""The Onsager flow whose unit Euler step is a graph convolution.

    .. math:: \frac{\partial Z}{\partial t} = A(Z) Z W - Z, \qquad Z^{(k+1)} = A Z^{(k)} W

    The wrapped flow is (A(Z) - I) Z. The paper presents GCN's update :math:`A X W` as an Onsager diffusion, and drops
    the identity as in eq. (10): a step of :math:`(A - I) Z W` would add :math:`Z (I - W)`, a step of this equation does
    not. The state does not grow if the norm of W is below one.
    """

    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> FunctionField:
        f, w = self.flow.bind(z, edges, start=start), self.weight
        return FunctionField(lambda t, z: (z + f(t, z)) @ w - z, (*f.tensors, w))


@checked
class ChebyshevFlow(WrappedFlow):
    r"""Diffusion over several hops at once, by a learned polynomial of the Laplacian L = I - A.

    .. math:: \frac{\partial Z}{\partial t} = \sum_{k < K} T_k(\hat L) Z W_k - Z, \qquad \hat L = L - I = -A

    with the Chebyshev polynomials :math:`T_k`, for K = ``terms`` by K - 1 evaluations of the wrapped flow (A - I) Z, as
    which it starts. A unit Euler step is the layer of ChebNet. It is also an explicit step of Z' = (A - I) Z in K - 1
    stages with a learned stability polynomial, as every explicit Runge-Kutta method with as many stages has one.
    """

    def __init__(self, flow: Flow, channels: Count, *, terms: Count) -> None:
        super().__init__(flow)
        if terms < 2:
            raise ValueError(f"ChebyshevFlow needs `terms` at least 2, the second being the first hop; got {terms}.")
        self.channels, self.terms = channels, terms
        self.weight = nn.Parameter(torch.empty(terms, channels, channels))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.weight.zero_()
        self.weight[1] = -torch.eye(self.channels)

    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> FunctionField:
        f, weights = self.flow.bind(z, edges, start=start), self.weight

        def hop(t: float, z: Tensor) -> Tensor:
            return -z - f(t, z)  # - A z, because f is A z - z

        def dz_dt(t: float, z: Tensor) -> Tensor:
            previous, term = z, hop(t, z)
            out = z @ weights[0] + term @ weights[1] - z
            for weight in weights[2:]:
                previous, term = term, 2 * hop(t, term) - previous
                out = out + term @ weight
            return out

        return FunctionField(dz_dt, (*f.tensors, weights))


@checked
class FrozenPositions(WrappedFlow):
    r"""A flow of the features alone, whose diffusivity sees the constant positions too.

    .. math:: \frac{\partial u}{\partial t} = 0, \qquad \frac{\partial x}{\partial t} = f_x(u, x)
    """

    def __init__(self, flow: Flow, joint: Joint) -> None:
        super().__init__(flow)
        self.joint = joint

    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> FunctionField:
        f = self.flow.bind(z, edges, start=start)

        def dz_dt(t: float, z: Tensor) -> Tensor:
            du, dx = self.joint.split(f(t, z))
            return self.joint.join(torch.zeros_like(du), dx)

        return FunctionField(dz_dt, f.tensors)


@checked
class MessageFlow(Flow):
    r"""The general equation of message passing, whose linear case is diffusion.

    .. math:: \frac{\partial Z}{\partial t} = \Psi(Z)

    :math:`\Psi` is called as ``layer(z, edge_index)``, without edge weights: a PyG layer, say, that keeps the width
    of ``z``. An Euler step is the layer with a residual connection. ``diffusivity`` reports uniform weights.
    """

    def __init__(self, layer: nn.Module) -> None:
        super().__init__(RandomWalk())
        self.layer = layer

    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> FunctionField:
        return FunctionField(lambda t, z: self.layer(z, edges.edge_index), tuple(self.layer.parameters()))


@checked
class NodewiseLayer(nn.Module):
    """A layer for :class:`MessageFlow` that applies ``module``, (n, d) -> (n, d), and ignores the edges."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, z: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.module(z)
        return out
