"""Backpropagation through the steps."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from beltrami.scheme.base import Adjoint, CountingField, Solution, Stats, VectorField
from beltrami.scheme.device_loop import DeviceLoop
from beltrami.scheme.loop import accepted_steps

if TYPE_CHECKING:
    from beltrami.scheme.solve import Scheme


@dataclass(frozen=True)
class Direct(Adjoint):
    """The exact gradient of the numerical solution, its step sizes held constant.

    The graph of every accepted step is kept: the fastest adjoint, and the one that takes most memory. On a GPU, and
    under ``torch.func.vmap``, adaptive steps are chosen on the device (``DeviceLoop``); where the other adjoints are at
    work they are chosen on the host, which waits for the device at each.
    """

    def run(
        self, f: VectorField, y0: Tensor, ts: tuple[float, ...], scheme: "Scheme", params: tuple[Tensor, ...]
    ) -> Solution:
        stats = Stats()
        field = CountingField(f, stats)
        if DeviceLoop.takes(scheme, y0):
            return Solution(DeviceLoop(scheme).run(field, y0, ts, stats), stats)
        ys = [y0]
        for stride in accepted_steps(field, y0, ts[0], ts[-1], scheme, stats):
            ys += stride.observe(ts).values()
        field.backward = True  # implicit steps evaluate the field once more when they are differentiated
        return Solution(torch.stack(ys), stats)
