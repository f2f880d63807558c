"""Held: positions that are seen and do not move."""

import torch
from torch import Tensor

from beltrami.flow.base import Flow, VectorField
from beltrami.flow.wrapped import Wrapped
from beltrami.graph import Edges
from beltrami.joint import Joint


class FrozenPositions(Wrapped):
    r"""A flow of the features alone: the positions stand still where they were computed.

    .. math:: \frac{\partial u}{\partial t} = 0, \qquad \frac{\partial x}{\partial t} = f_x(u, x)

    What Table 1 calls an evolution of the features whose diffusivity looks at the positions too.

    Args:
        flow: the equation of all channels.
        joint: which of them are positions.
    """

    def __init__(self, flow: Flow, joint: Joint) -> None:
        super().__init__(flow)
        self.joint = joint

    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> "FrozenPositionsField":
        return FrozenPositionsField(self.flow.bind(z, edges, start=start), self.joint)


class FrozenPositionsField(VectorField):
    """The vector field of :class:`FrozenPositions`."""

    def __init__(self, f: VectorField, joint: Joint) -> None:
        self.f, self.joint = f, joint

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return self.f.tensors

    def __call__(self, t: float, z: Tensor) -> Tensor:
        du, dx = self.joint.split(self.f(t, z))
        return self.joint.join(torch.zeros_like(du), dx)
