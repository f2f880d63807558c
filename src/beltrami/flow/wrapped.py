"""Wrapped: a flow that alters another."""

from torch import Tensor, nn

from beltrami.diffusivity import EdgeWeights
from beltrami.flow.base import Flow, VectorField


class Wrapped(Flow):
    """A flow made of another one, whose diffusivity is its own.

    Args:
        flow: the one within.
    """

    def __init__(self, flow: Flow) -> None:
        nn.Module.__init__(self)  # the diffusivity is registered once, where it stands
        self.flow = flow

    @property
    def diffusivity(self) -> EdgeWeights:  # type: ignore[override]  # to read, as everybody does
        return self.flow.diffusivity


class WeightedField(VectorField):
    """A vector field made of another one and of a weight that acts on what it gives."""

    def __init__(self, f: VectorField, weight: Tensor) -> None:
        self.f, self.weight = f, weight

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return (*self.f.tensors, self.weight)
