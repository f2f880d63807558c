"""The graph Beltrami flow, with diffusivities evaluated at the current state or frozen at the start."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from beltrami.arguments import checked
from beltrami.diffusivity import Diffusivity, Paired
from beltrami.flow.base import BoundField, Coupling, Flow, Rate, Source, present, rate_and_source
from beltrami.graph import Edges, aggregate, attend
from beltrami.graph.ops.operators import graph_of
from beltrami.graph.ops.recurrence import LinearRecurrence
from beltrami.scheme import LinearVectorField


class LinearField(BoundField, LinearVectorField):
    r"""A linear vector field :math:`f(z) = \alpha (A - I) z + b` with constant A and b.

    ``a`` (m,) is A on the edges; ``isolated`` is the mask (n,) of the nodes that do not move, None if all move (as a
    ``LinearVectorField``, its matrix B is A with a one for each of them); ``alpha`` is a scalar of at most one, None
    for one; ``source`` is b (n, d), None for zero; ``norm`` is p of the p-norm in which A does not expand.
    """

    def __init__(
        self,
        a: Tensor,
        edges: Edges,
        *,
        isolated: Tensor | None = None,
        alpha: Tensor | None = None,
        source: Tensor | None = None,
        norm: float = math.inf,
        storage: torch.dtype | None = None,
    ) -> None:
        self.a, self.edges, self.alpha, self.source, self.norm, self.storage = a, edges, alpha, source, norm, storage
        self.isolated = None if isolated is None else isolated.to(a.dtype)[:, None]
        self.weights = a if alpha is None else alpha * a
        # alpha times the diagonal of I; a copy, because the weights depend on alpha as well
        self.diagonal = None if alpha is None else alpha.clone()
        if self.isolated is not None:
            self.diagonal = 1 - self.isolated if alpha is None else alpha * (1 - self.isolated)
        self.tensors = present(self.weights, self.diagonal, self.source)

    def operator(self, z: Tensor) -> Tensor:
        r"""Return the linear part, :math:`\alpha (A - I) z`."""
        return aggregate(self.weights, z, self.edges) - (z if self.diagonal is None else self.diagonal * z)

    @property
    def structurally_symmetric(self) -> bool:
        return self.edges.structurally_symmetric

    @property
    def pattern(self) -> LinearRecurrence:
        return LinearRecurrence(self.edges, self.isolated, self.storage)

    @property
    def parts(self) -> list[Tensor]:
        rows = self.edges.rows
        return [rows.ptr, rows.index] if self.isolated is None else [rows.ptr, rows.index, self.isolated]

    @classmethod
    def of_parts(cls, a: Tensor, parts: Sequence[Tensor], norm: float) -> "LinearField":
        ptr, index, *isolated = parts
        edges = graph_of(ptr, index, len(ptr) - 1)
        return cls(a, edges, isolated=isolated[0][:, 0] if isolated else None, norm=norm)

    def __call__(self, t: float, z: Tensor) -> Tensor:
        dz = self.operator(z)
        return dz if self.source is None else dz + self.source


class BeltramiField(BoundField):
    r"""The vector field :math:`f(z) = \alpha (\kappa A(z) - I) z + b` with A evaluated at the current state; ``kappa``
    is a scalar, None for one."""

    def __init__(self, flow: "BeltramiFlow", edges: Edges, z0: Tensor) -> None:
        self.diffusivity, self.edges, self.storage = flow.diffusivity, edges, flow.storage
        self.alpha, self.source = rate_and_source(flow.rate, flow.source, z0)
        self.kappa = None if flow.coupling is None else flow.coupling()
        self.isolated = flow.diffusivity.normalise.isolated(edges)
        learned = [values for values in present(edges.weight, edges.features) if values.requires_grad]
        self.tensors = (*self.diffusivity.parameters(), *present(self.alpha, self.source, self.kappa), *learned)

    def __call__(self, t: float, z: Tensor) -> Tensor:
        pair = self.diffusivity.pair(z) if isinstance(self.diffusivity, Paired) else None
        if pair is None:
            average = aggregate(self.diffusivity(z, self.edges), z, self.edges)
        else:  # scores, weights and sums in one pass
            average = attend(pair, z, self.edges, normalise=self.diffusivity.normalise, storage=self.storage)
        if self.kappa is not None:
            average = self.kappa * average
        dz = average - (z if self.isolated is None else torch.where(self.isolated[:, None], 0.0, z))
        if self.alpha is None:
            return dz if self.source is None else dz + self.source
        return self.alpha * dz if self.source is None else torch.addcmul(self.source, self.alpha, dz)


@checked
class BeltramiFlow(Flow):
    r"""The graph Beltrami flow, eqs. (7) and (8): diffusivities at the current state.

    .. math:: \frac{\partial z_i}{\partial t} = \alpha \sum_j a(z_i(t), z_j(t)) (z_j(t) - z_i(t)) + \beta z_i(0)

    Computed as :math:`\alpha (A(z) - I) z + \beta z(0)`: the same for weights that sum to one over rows, and the
    mass-conserving flow for weights that do over columns. Without ``rate``, alpha is one; without ``source``, beta is
    zero; a ``coupling`` multiplies A by kappa. ``storage`` is a shorter dtype, such as ``torch.bfloat16``, for the
    values that our GPU kernels gather along edges; sums keep their precision.
    """

    diffusivity: Diffusivity

    def __init__(
        self,
        diffusivity: Diffusivity,
        *,
        rate: Rate | None = None,
        source: Source | None = None,
        coupling: Coupling | None = None,
        storage: torch.dtype | None = None,
    ) -> None:
        super().__init__(diffusivity)
        self.rate, self.source, self.coupling, self.storage = rate, source, coupling, storage

    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> BeltramiField:
        return BeltramiField(self, edges, z if start is None else start)


@checked
class LinearFlow(Flow):
    r"""The Beltrami flow with diffusivities frozen at the start, as in every published setting.

    .. math:: \frac{\partial z_i}{\partial t} = \alpha \sum_j a(z_i(0), z_j(0)) (z_j(t) - z_i(t)) + \beta z_i(0)

    Linear in z: scores are computed once per solve, or per segment if the graph is rewired between segments, and an
    evaluation is one sparse product. A ``coupling`` multiplies the weights by kappa. ``storage`` is a shorter dtype,
    such as ``torch.bfloat16``, for the vectors that ``Exponential`` keeps and gathers along edges on a GPU; sums keep
    their precision.
    """

    diffusivity: Diffusivity

    def __init__(
        self,
        diffusivity: Diffusivity,
        *,
        rate: Rate | None = None,
        source: Source | None = None,
        coupling: Coupling | None = None,
        storage: torch.dtype | None = None,
    ) -> None:
        super().__init__(diffusivity)
        self.rate, self.source, self.coupling, self.storage = rate, source, coupling, storage

    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> LinearField:
        return linear_field(self, edges, z if start is None else start, self.diffusivity(z, edges))


def linear_field(flow: BeltramiFlow | LinearFlow, edges: Edges, start: Tensor, a: Tensor) -> LinearField:
    """Return the linear field of a flow with the weights ``a`` (m,); ``start`` is z(0)."""
    alpha, source = rate_and_source(flow.rate, flow.source, start)
    normalise = flow.diffusivity.normalise
    return LinearField(
        a if flow.coupling is None else flow.coupling() * a,
        edges,
        isolated=normalise.isolated(edges),
        alpha=alpha,
        source=source,
        norm=normalise.norm,
        storage=flow.storage,
    )
