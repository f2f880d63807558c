"""Running costs: regularisers of the dynamics, integrated along the path together with the state."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from beltrami.arguments import checked
from beltrami.flow.base import BoundField


@checked
@dataclass(frozen=True)
class Cost(ABC):
    """A density c(t, z) >= 0 per node; ``weight`` times its integral, averaged over nodes, is added to the loss."""

    weight: float
    differentiates: ClassVar[bool] = False  # whether the density contains a derivative of the field

    def __post_init__(self) -> None:
        if not 0 <= self.weight < float("inf"):
            raise ValueError(f"{type(self).__name__} needs `weight` at least 0 and finite; got {self.weight}.")

    def sample(self, z0: Tensor, generator: torch.Generator | None) -> Tensor | None:
        """Return the random direction that stays fixed during one solve; None if the cost needs none."""
        return None

    @abstractmethod
    def density(self, z: Tensor, dz: Tensor, direction: Tensor | None) -> Tensor:
        """Return the density at each node, (n, d), (n, d) -> (n,)."""


class Kinetic(Cost):
    r"""Kinetic energy :math:`\int_0^T \tfrac1d \|f(z(t))\|^2 dt`: prefers short, straight paths."""

    def density(self, z: Tensor, dz: Tensor, direction: Tensor | None) -> Tensor:
        return dz.square().mean(-1)


class JacobianNorm(Cost):
    r"""Frobenius norm of the Jacobian :math:`\int_0^T \tfrac1d \|\nabla f(z(t))\|_F^2 dt`: prefers smooth fields.

    Hutchinson's estimate: :math:`\|\epsilon^\top \nabla f\|^2` for one normal random direction :math:`\epsilon`, fixed
    during the solve, has the squared Frobenius norm as its mean.
    """

    differentiates: ClassVar[bool] = True

    def sample(self, z0: Tensor, generator: torch.Generator | None) -> Tensor:
        return torch.randn(z0.shape, dtype=z0.dtype, device=z0.device, generator=generator)

    def density(self, z: Tensor, dz: Tensor, direction: Tensor | None) -> Tensor:
        (row,) = torch.autograd.grad(dz, z, direction, create_graph=True)
        return row.square().mean(-1)


class Costed(BoundField):
    """A vector field with running costs. Its state is (n, d + c): z, then the costs of each node, initially zero."""

    def __init__(
        self, f: BoundField, costs: Sequence[Cost], z0: Tensor, *, generator: torch.Generator | None = None
    ) -> None:
        if not costs:
            raise ValueError("Costed needs at least one cost; without any, solve the vector field itself.")
        self.f, self.costs, self.tensors = f, tuple(costs), f.tensors
        self.directions = tuple(cost.sample(z0, generator) for cost in self.costs)

    def join(self, z0: Tensor) -> Tensor:
        """Return the initial state: z with its costs at zero."""
        return torch.cat((z0, z0.new_zeros(z0.shape[0], len(self.costs))), dim=-1)

    def split(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return z (..., n, d) of a state (..., n, d + c), and the weighted sum of the costs, averaged over nodes."""
        z, running = state[..., : -len(self.costs)], state[..., -len(self.costs) :]
        weights = running.new_tensor([cost.weight for cost in self.costs])
        return z, (running.mean(-2) * weights).sum(-1)

    def __call__(self, t: float, state: Tensor) -> Tensor:
        if not any(cost.differentiates for cost in self.costs):
            return self._slope(t, state[..., : -len(self.costs)])
        recording = torch.is_grad_enabled()
        with torch.enable_grad():
            z = state[..., : -len(self.costs)]
            out = self._slope(t, z if z.requires_grad else z.detach().requires_grad_())
        return out if recording else out.detach()

    def _slope(self, t: float, z: Tensor) -> Tensor:
        dz = self.f(t, z)
        densities = [c.density(z, dz, direction) for c, direction in zip(self.costs, self.directions, strict=True)]
        return torch.cat((dz, torch.stack(densities, dim=-1)), dim=-1)
