"""Wrapped: a flow that alters another."""

from torch import nn

from beltrami.diffusivity import EdgeWeights
from beltrami.flow.base import Flow


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
