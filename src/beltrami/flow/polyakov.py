"""The gradient flow of an energy: the Beltrami flow of Theorem 1."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from beltrami.arguments import checked
from beltrami.diffusivity import Variational
from beltrami.flow.base import Attachment, BoundField, Flow, Rate, present
from beltrami.graph import Edges, collect, laplacian, spread
from beltrami.scheme import Potential

Mass: TypeAlias = Callable[[Edges, torch.dtype], Tensor]
"""A function that returns the mass of every node, (n,): :func:`unit_mass` or :func:`degree`."""


def unit_mass(edges: Edges, dtype: torch.dtype) -> Tensor:
    """Return one for every node, (n, 1): the inner product of Theorem 1."""
    return torch.ones(edges.num_nodes, 1, dtype=dtype, device=edges.device)


def degree(edges: Edges, dtype: torch.dtype) -> Tensor:
    """Return the total weight of each node's edges, (n, 1), or one for a node without edges: hubs move slowly."""
    weight = torch.ones(edges.num_edges, device=edges.device) if edges.weight is None else edges.weight
    both = collect(weight[:, None], edges) + collect(weight[:, None], edges, senders=True)
    return 0.5 * both.masked_fill(both == 0, 2).to(dtype)


class PolyakovField(BoundField, Potential):
    """The vector field of :class:`PolyakovFlow` on a graph, with the energy that it decreases."""

    def __init__(self, flow: "PolyakovFlow", z: Tensor, edges: Edges, start: Tensor) -> None:
        self.action, self.edges, self.mass = flow.diffusivity, edges, flow.mass(edges, z.dtype)
        self.inverse_mass = spread(1 / self.mass, edges)[:, 0]  # on the edges: m numbers instead of n d
        self.alpha: Tensor | None = None if flow.rate is None else flow.rate()
        attachment: Tensor | None = None if flow.attachment is None else flow.attachment()
        self.attached = None if attachment is None else (attachment, start)
        self.tensors = (*self.action.parameters(), *present(self.alpha), *(self.attached or ()))

    def __call__(self, t: float, z: Tensor) -> Tensor:
        a = self.inverse_mass * self.action(z, self.edges)
        dz = laplacian(z, a if self.alpha is None else self.alpha * a, self.edges)
        if self.attached is None:
            return dz
        attachment, start = self.attached
        return dz + attachment * (start - z)

    def energy(self, z: Tensor) -> Tensor:
        energy = self.action.energy(z, self.edges)
        if self.alpha is not None:
            energy = self.alpha * energy
        if self.attached is None:
            return energy
        attachment, start = self.attached
        return energy + 0.5 * attachment * (self.mass * (z - start).square()).sum()


@checked
class PolyakovFlow(Flow):
    r"""The gradient flow of an energy: the Beltrami flow with the diffusivity that Theorem 1 derives.

    .. math:: \mu_i \frac{\partial z_i}{\partial t}
              = \alpha \sum_j a_{ij}(Z) (z_j - z_i) + \lambda \mu_i (z_i(0) - z_i)
              = - \frac{\partial E}{\partial z_i}, \qquad
              E = \alpha S[Z] + \frac\lambda2 \sum_i \mu_i \|z_i - z_i(0)\|^2

    The energy never grows, for any parameters: :math:`dE/dt = - \sum_i \mu_i \|\partial_t z_i\|^2 \le 0`. E starts at
    :math:`\alpha S[Z(0)]` and both of its terms are at least zero, so the action never exceeds its initial value.

    In discrete time ``EnergyDecreasing`` guarantees the decrease. It is not needed where the action is concave in the
    squared distances and at most that of the constant family, as for all families here but ``Gauss``: the action then
    lies below the quadratic form of the weights frozen at the beginning of the step, and equals it there. With
    ``mass=degree`` the curvature of that form is at most :math:`4 \alpha`, so that explicit Euler steps of at most
    :math:`2 / (4 \alpha + \lambda)` do not raise the energy.

    ``diffusivity`` is the action S. ``mass`` is mu: ``unit_mass`` is the theorem's; with ``degree`` the constant family
    gives the random walk, and hubs do not limit the step size. Without ``rate``, alpha is one; without ``attachment``,
    lambda is zero.
    """

    diffusivity: Variational

    def __init__(
        self,
        diffusivity: Variational,
        *,
        mass: Mass = unit_mass,
        rate: Rate | None = None,
        attachment: Attachment | None = None,
    ) -> None:
        super().__init__(diffusivity)
        self.mass, self.rate, self.attachment = mass, rate, attachment

    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> PolyakovField:
        return PolyakovField(self, z, edges, z if start is None else start)
