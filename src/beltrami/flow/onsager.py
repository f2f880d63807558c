"""Onsager diffusion: a flow that mixes channels."""

import torch
from torch import Tensor, nn

from beltrami.flow.base import Flow
from beltrami.flow.wrapped import WeightedField, Wrapped
from beltrami.graph import Edges


class _Mixing(Wrapped):
    """A flow with a matrix W across the channels, which begins as the identity."""

    def __init__(self, flow: Flow, channels: int) -> None:
        super().__init__(flow)
        self.weight = nn.Parameter(torch.eye(channels))


class OnsagerFlow(_Mixing):
    r"""Onsager diffusion, where a matrix acts across the channels.

    .. math:: \frac{\partial Z}{\partial t} = Q(Z) Z W, \qquad Q(Z) = A(Z) - I

    The flow within is Q(Z) Z, live or frozen. W begins as the identity, at which this is that flow, and is free to
    become anything: where it has eigenvalues of negative real part the diffusion runs backwards in their channels.
    For W(t), see :class:`TimeVarying`.

    Args:
        flow: Q(Z) Z.
        channels: width of ``z``.

    Shapes:
        ``z`` (n, channels) -> (n, channels).
    """

    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> "OnsagerField":
        return OnsagerField(self.flow.bind(z, edges, start=start), self.weight)


class OnsagerField(WeightedField):
    """The vector field f(t, z) W."""

    def __call__(self, t: float, z: Tensor) -> Tensor:
        return self.f(t, z) @ self.weight


class MixedFlow(_Mixing):
    r"""The Onsager flow whose unit Euler step is a graph convolution.

    .. math:: \frac{\partial Z}{\partial t} = A(Z) Z W - Z, \qquad Z^{(k+1)} = A Z^{(k)} W

    The paper gives GCN's update :math:`A X W` as an Onsager diffusion. Its identity is dropped there as it is in
    eq. (10): a step of :math:`(A - I) Z W` would keep :math:`Z (I - W)` besides, and this is the equation whose step
    keeps nothing. The state relaxes towards its mixed average; for W of a norm below one it does not grow. W begins as
    the identity, at which this is the flow within.

    Args:
        flow: (A(Z) - I) Z.
        channels: width of ``z``.

    Shapes:
        ``z`` (n, channels) -> (n, channels).
    """

    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> "MixedField":
        return MixedField(self.flow.bind(z, edges, start=start), self.weight)


class MixedField(WeightedField):
    """The vector field (z + f(t, z)) W - z."""

    def __call__(self, t: float, z: Tensor) -> Tensor:
        return (z + self.f(t, z)) @ self.weight - z
