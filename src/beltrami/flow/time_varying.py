"""Time-dependent flows: several flows weighted by functions of time."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from torch import Tensor, nn

from beltrami.arguments import checked
from beltrami.diffusivity import EdgeWeights
from beltrami.flow.base import Flow, FunctionField
from beltrami.graph import Edges
from beltrami.scheme.base import Time

ROUND_OFF = 1e-5  # tolerance as a share of an interval: times are sums of steps, on a GPU in single precision


class Schedule(ABC):
    """Coefficients c_k(t), k < ``count``, not negative and with sum one at all times."""

    count: int

    @abstractmethod
    def __call__(self, t: Time) -> list[Time]:
        """Return the coefficients at ``t``; they are tensors () if the time is a tensor."""


@checked
@dataclass(frozen=True)
class PerInterval(Schedule):
    """One flow after the other, each for a time ``length`` and the last for ever: the layers of a network.

    Euler steps of that length evaluate each flow once. Steps of higher order also evaluate the flow after it.
    """

    count: int
    length: float = 1.0

    def __post_init__(self) -> None:
        _check(self, "length", self.length)

    def __call__(self, t: Time) -> list[Time]:
        place = t / self.length + ROUND_OFF
        begun: list[Time] = [1.0, *((place >= k) * 1.0 for k in range(1, self.count)), 0.0]
        return [this - following for this, following in pairwise(begun)]


@checked
@dataclass(frozen=True)
class Bernstein(Schedule):
    r"""Bernstein's polynomials of time, a smooth transition from the first flow to the last.

    .. math:: c_k(t) = \binom{K - 1}{k} s^k (1 - s)^{K - 1 - k}, \qquad s = t / T

    K is ``count`` and T is ``time``; after T only the last flow acts.
    """

    count: int
    time: float

    def __post_init__(self) -> None:
        _check(self, "time", self.time)

    def __call__(self, t: Time) -> list[Time]:
        s = t / self.time
        s = s.clamp(0, 1) if isinstance(s, Tensor) else min(max(s, 0.0), 1.0)
        last = self.count - 1
        return [math.comb(last, k) * s**k * (1 - s) ** (last - k) for k in range(self.count)]


@checked
class TimeVarying(Flow):
    r"""A time-dependent flow: flows of the same form with separate parameters, weighted by functions of time.

    .. math:: \frac{\partial Z}{\partial t} = \sum_k c_k(t) f_k(Z)

    For Beltrami flows this is the flow of the diffusivity :math:`a(z_i, z_j, t) = \sum_k c_k(t) a_k(z_i, z_j)`; for
    Onsager flows it is that of :math:`W(t) = \sum_k c_k(t) W_k`. With :class:`PerInterval` and Euler steps the flows
    are layers without shared parameters, :math:`Z^{(k+1)} = Q(Z^{(k)}, \theta^{(k)}) Z^{(k)}`. Flows with coefficient
    zero are not evaluated, unless the time is a tensor. ``diffusivity`` is that of the first flow.
    """

    def __init__(self, flows: Sequence[Flow], schedule: Schedule) -> None:
        nn.Module.__init__(self)  # without the diffusivity, which is registered once, in its flow
        if len(flows) != schedule.count:
            found = f"{len(flows)} flows and {schedule.count} coefficients"
            raise ValueError(f"TimeVarying needs one flow for each coefficient; got {found}.")
        self.flows, self.schedule = nn.ModuleList(flows), schedule

    @property
    def diffusivity(self) -> EdgeWeights:  # type: ignore[override]  # read-only
        return cast("Flow", self.flows[0]).diffusivity

    def bind(self, z: Tensor, edges: Edges, *, start: Tensor | None = None) -> FunctionField:
        fields = [cast("Flow", flow).bind(z, edges, start=start) for flow in self.flows]

        def dz_dt(t: float, z: Tensor) -> Tensor:
            coefficients = zip(self.schedule(t), fields, strict=True)
            first, *others = (c * f(t, z) for c, f in coefficients if isinstance(c, Tensor) or c != 0)
            out: Tensor = sum(others, start=first)
            return out

        tensors = {id(tensor): tensor for f in fields for tensor in f.tensors}  # flows may share some
        return FunctionField(dz_dt, tuple(tensors.values()))


def _check(schedule: Schedule, name: str, value: float) -> None:
    if schedule.count < 1 or not 0 < value < math.inf:
        needed = f"{type(schedule).__name__} needs `count` at least 1 and a positive `{name}`"
        raise ValueError(f"{needed}; got {schedule.count} and {value}.")
