"""Backpropagation through the steps."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from beltrami.scheme.base import Adjoint, Solution, Stats, Tally, VectorField
from beltrami.scheme.march import march

if TYPE_CHECKING:
    from beltrami.scheme.solve import Scheme


@dataclass(frozen=True)
class Direct(Adjoint):
    """The exact gradient of the numerical solution, its step sizes held constant.

    The graph of every accepted step is kept: the fastest adjoint, and the one that takes most memory.
    """

    def run(
        self, f: VectorField, y0: Tensor, ts: tuple[float, ...], scheme: "Scheme", params: tuple[Tensor, ...]
    ) -> Solution:
        stats = Stats()
        field = Tally(f, stats)
        ys = [y0]
        for stride in march(field, y0, ts[0], ts[-1], scheme, stats):
            ys += stride.observe(ts).values()
        field.backward = True  # implicit steps evaluate the field once more when they are differentiated
        return Solution(torch.stack(ys), stats)
