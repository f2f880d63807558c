"""Stencils for the length of training."""

from torch import Tensor, nn

from beltrami.graph import Edges
from beltrami.stencil.base import Stencil


class TrainingOnly(Stencil):
    """A stencil that acts while ``module`` is training, and keeps every edge when it is judged.

    As the last of a chain it is dropout for edges: ``TrainingOnly(Strongest(0.9, a), a)`` learns on the strongest
    edges and predicts on all of them.

    Args:
        stencil: what to do while training.
        module: a part of the model, whose ``train()`` and ``eval()`` reach it; as a rule the diffusivity.
    """

    def __init__(self, stencil: Stencil, module: nn.Module) -> None:
        self.stencil, self.module = stencil, module

    def __call__(self, z: Tensor, edges: Edges) -> Edges:
        return self.stencil(z, edges) if self.module.training else edges
