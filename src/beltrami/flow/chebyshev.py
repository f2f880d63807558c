"""Diffusion by a learned polynomial of the Laplacian."""

import torch
from torch import Tensor, nn

from beltrami.flow.base import Flow
from beltrami.flow.wrapped import WeightedField, Wrapped
from beltrami.graph import Edges


class ChebyshevFlow(Wrapped):
    r"""Diffusion over several hops at once, weighed by a polynomial of the Laplacian L = I - A.

    .. math:: \frac{\partial Z}{\partial t} = \sum_{k < K} T_k(\hat L) Z W_k - Z, \qquad \hat L = L - I = -A

    :math:`T_k` are Chebyshev's polynomials, by their recurrence: K - 1 evaluations of the flow within, one after
    the other. A unit Euler step is the layer of ChebNet. Read the other way, it is an explicit step of the plain
    diffusion Z' = (A - I) Z in K - 1 stages whose stability polynomial is learned: that of any explicit Runge-Kutta
    method of so many stages is among them. It begins as A, at which this is the flow within.

    Args:
        flow: (A - I) Z, for ChebNet of fixed weights.
        channels: width of ``z``.
        terms: K, at least two; the largest distance reached is K - 1.

    Shapes:
        ``z`` (n, channels) -> (n, channels).
    """

    def __init__(self, flow: Flow, channels: int, *, terms: int) -> None:
        super().__init__(flow)
        if terms < 2:
            raise ValueError(f"ChebyshevFlow needs `terms` at least 2, the second being the first hop; got {terms}.")
        weight = torch.zeros(terms, channels, channels)
        weight[1] = -torch.eye(channels)
        self.weight = nn.Parameter(weight)

    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> "ChebyshevField":
        return ChebyshevField(self.flow.bind(z, edges, start=start), self.weight)


class ChebyshevField(WeightedField):
    """The vector field of :class:`ChebyshevFlow`, where A z is z + f(t, z)."""

    def __call__(self, t: float, z: Tensor) -> Tensor:
        before, term = z, self._hop(t, z)
        out = z @ self.weight[0] + term @ self.weight[1] - z
        for weight in self.weight[2:]:
            before, term = term, 2 * self._hop(t, term) - before
            out = out + term @ weight
        return out

    def _hop(self, t: float, z: Tensor) -> Tensor:
        return -z - self.f(t, z)
