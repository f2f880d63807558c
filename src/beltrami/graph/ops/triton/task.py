"""What an attention is to compute, as the kernels want to be told."""

from dataclasses import dataclass
from typing import Any

import torch
import triton.language as tl
from torch import Tensor
from triton import next_power_of_2

from beltrami.graph.edges import Compressed
from beltrami.graph.ops.triton.product import FUSION

TILE = 512  # numbers of a tile: entries in flight times channels
WARP = 512  # numbers of a tile a warp takes on
Totals = tuple[Tensor | None, Tensor | None]  # of the row's own side, and of the other


@dataclass(frozen=True)
class Task:
    """Scores ``shape`` of dot products of ``heads`` heads of ``channels``, linked by the softmax or by squareplus.

    ``weight`` is the edges' measure, or None; ``dtype`` that of the results, whatever the inputs are stored in.
    """

    shape: str
    slope: float
    squareplus_link: bool
    weight: Tensor | None
    heads: int
    channels: int
    dtype: torch.dtype

    @property
    def sum_dtype(self) -> torch.dtype:
        return torch.float64 if self.dtype == torch.float64 else torch.float32

    @property
    def padded_heads(self) -> int:
        return int(next_power_of_2(self.heads))

    @property
    def pair_width(self) -> int:
        """Channels of all heads in a tile."""
        return self.padded_heads * self.width(self.channels)

    @staticmethod
    def width(d: int) -> int:
        """Channels of a state in a tile."""
        return int(next_power_of_2(max(1, d)))

    def walk(self, pattern: Compressed, *, split: bool = False) -> tuple[Tensor, ...]:
        """What a program needs to walk along its piece: of all pieces, or of those of split rows alone."""
        bounds = pattern.pieces.split_bounds if split else pattern.pieces.bounds
        return *bounds, pattern.index, pattern.edge, pattern.ptr if self.weight is None else self.weight

    def constants(self, d: int) -> dict[str, Any]:
        return {
            "H": self.heads,
            "W": self.channels,
            "D": d,
            "HEADS": self.padded_heads,
            "C": self.width(self.channels),
            "Z": self.width(d),
            "SHAPE": self.shape,
            "SLOPE": self.slope,
            "SQUAREPLUS": self.squareplus_link,
            "WEIGHTED": self.weight is not None,
            "SUM": tl.float64 if self.dtype == torch.float64 else tl.float32,
        }

    @staticmethod
    def known(totals: Totals, other: Tensor) -> tuple[Tensor, Tensor]:
        """The totals, with something to point at in the place of those that are not there."""
        own_total, other_total = totals
        return other if own_total is None else own_total, other if other_total is None else other_total

    @staticmethod
    def sides(totals: Totals) -> dict[str, bool]:
        return {"OWN": totals[0] is not None, "OTHER": totals[1] is not None}

    @staticmethod
    def tile(width: int) -> dict[str, int]:
        """Entries in flight and warps for tiles of this width: from four, unless they are very wide, to 32."""
        entries = min(32, max(TILE // width, 4 if width <= 1024 else 1))
        return {"E": entries, "num_warps": min(4, max(1, entries * width // WARP)), **FUSION}
