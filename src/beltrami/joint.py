"""Joint coordinates z = (u, x): the layout of positions and features in the channels of a state."""

from dataclasses import dataclass

import torch
from torch import Tensor

from beltrami.arguments import checked


@checked
@dataclass(frozen=True)
class Joint:
    """Layout of a state z (n, pos + feat): positions u (d' = ``pos`` channels), then features x (d = ``feat``)."""

    pos: int
    feat: int

    def __post_init__(self) -> None:
        if self.pos < 0 or self.feat < 0 or self.channels == 0:
            raise ValueError(f"Joint needs `pos` and `feat` at least 0 and not both 0; got {self}.")

    @property
    def channels(self) -> int:
        return self.pos + self.feat

    @property
    def u(self) -> slice:
        return slice(0, self.pos)

    @property
    def x(self) -> slice:
        return slice(self.pos, self.channels)

    @checked
    def join(self, u: Tensor, x: Tensor) -> Tensor:
        """(n, pos), (n, feat) -> z (n, pos + feat)."""
        if u.shape[-1:] != (self.pos,) or x.shape[-1:] != (self.feat,) or u.shape[:-1] != x.shape[:-1]:
            found = f"{tuple(u.shape)} and {tuple(x.shape)}"
            raise ValueError(f"{self} joins `u` (n, {self.pos}) and `x` (n, {self.feat}); got {found}.")
        return torch.cat((u, x), dim=-1)

    @checked
    def split(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """z (n, pos + feat) -> (u, x)."""
        if z.shape[-1:] != (self.channels,):
            raise ValueError(f"{self} splits `z` (n, {self.channels}); got {tuple(z.shape)}.")
        return z[..., self.u], z[..., self.x]
