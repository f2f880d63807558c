"""Scheduled: flows that take turns in time."""

from collections.abc import Sequence
from typing import cast

from torch import Tensor, nn

from beltrami.diffusivity import EdgeWeights
from beltrami.flow.base import Flow, VectorField
from beltrami.flow.schedule import Schedule
from beltrami.graph import Edges


class TimeVarying(Flow):
    r"""A time-dependent flow: several of one form, each with parameters of its own, weighed by functions of time.

    .. math:: \frac{\partial Z}{\partial t} = \sum_k c_k(t) f_k(Z)

    For Beltrami flows this is the flow of the time-dependent diffusivity
    :math:`a(z_i, z_j, t) = \sum_k c_k(t) a_k(z_i, z_j)`, which sums to one as its parts do; for Onsager flows it is
    that of :math:`W(t) = \sum_k c_k(t) W_k`. With :class:`PerInterval` and Euler steps they are layers that share no
    parameters, :math:`Z^{(k+1)} = Q(Z^{(k)}, \theta^{(k)}) Z^{(k)}`. Flows whose coefficient is zero are not evaluated
    where the time is a float; where it is a tensor, all are. Asked for its diffusivity it shows that of the first.

    Args:
        flows: :math:`f_k`.
        schedule: :math:`c_k`, as many.

    Shapes:
        ``z`` (n, d) -> (n, d).
    """

    def __init__(self, flows: Sequence[Flow], schedule: Schedule) -> None:
        nn.Module.__init__(self)  # each diffusivity is registered once, where it stands
        if len(flows) != schedule.count:
            raise ValueError(
                f"Scheduled needs one flow a coefficient; got {len(flows)} flows and {schedule.count} coefficients."
            )
        self.flows, self.schedule = nn.ModuleList(flows), schedule

    @property
    def parts(self) -> tuple[Flow, ...]:
        """The flows in order."""
        return cast("tuple[Flow, ...]", tuple(self.flows))

    @property
    def diffusivity(self) -> EdgeWeights:  # type: ignore[override]  # to read, as everybody does
        return self.parts[0].diffusivity

    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> "TimeVaryingField":
        return TimeVaryingField([flow.bind(z, edges, start=start) for flow in self.parts], self.schedule)


class TimeVaryingField(VectorField):
    """The vector field of :class:`TimeVarying`."""

    def __init__(self, fields: Sequence[VectorField], schedule: Schedule) -> None:
        self.fields, self.schedule = tuple(fields), schedule

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        every = (tensor for field in self.fields for tensor in field.tensors)
        return tuple({id(tensor): tensor for tensor in every}.values())  # flows may share some

    def __call__(self, t: float, z: Tensor) -> Tensor:
        first, *others = (
            c * field(t, z)
            for c, field in zip(self.schedule(t), self.fields, strict=True)
            if isinstance(c, Tensor) or c != 0
        )
        out: Tensor = sum(others, start=first)
        return out
