"""The forward solution as a function of time, for those who come back along it."""

from bisect import bisect_right
from collections.abc import Sequence

import torch
from torch import Tensor

from beltrami.scheme.base import VectorField
from beltrami.scheme.interpolant import Hermite, LinearVectorField


class Path:
    """y(t) through the anchors y_i = y(t_i): cubic with the slopes f(t_i, y_i), or, unless smooth, linear.

    Only the stretch last asked about is kept, so that a walk along the path costs one slope to an anchor and no
    memory to speak of.

    Args:
        f: the vector field.
        times: increasing t_i.
        anchors: y_i.
        smooth: cubic or linear. Between steps far longer than the time scales of a stiff problem a cubic overshoots.
    """

    def __init__(self, f: VectorField, times: Sequence[float], anchors: Sequence[Tensor], *, smooth: bool) -> None:
        self.f, self.times, self.anchors, self.smooth = f, times, anchors, smooth
        self.slopes: dict[int, Tensor] = {}
        self.current = -1
        self.stretch: Hermite | LinearVectorField | None = None

    def __call__(self, t: float) -> Tensor:
        i = min(max(bisect_right(self.times, t) - 1, 0), len(self.times) - 2)
        if self.stretch is None or i != self.current:
            self.current, self.stretch = i, self._stretch(i)
        return self.stretch(t)

    def _stretch(self, i: int) -> Hermite | LinearVectorField:
        ends = self.times[i], self.times[i + 1], self.anchors[i], self.anchors[i + 1]
        if not self.smooth:
            return LinearVectorField(*ends)
        self.slopes = {k: self._slope(k) for k in (i, i + 1)}
        return Hermite(*ends, slope0=self.slopes[i], slope1=lambda: self.slopes[i + 1])

    def _slope(self, k: int) -> Tensor:
        if k in self.slopes:
            return self.slopes[k]
        with torch.no_grad():
            return self.f(self.times[k], self.anchors[k])
