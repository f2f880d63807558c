"""Grid: which pixels are neighbours, and views of both ends of each such pair."""

from typing import TypeAlias

from torch import Tensor

Offset: TypeAlias = tuple[int, int]

DOWN, RIGHT = (1, 0), (0, 1)
FALLING, RISING = (1, 1), (1, -1)
FOUR = (DOWN, RIGHT)
EIGHT = (DOWN, RIGHT, FALLING, RISING)


def ends(x: Tensor, offset: Offset) -> tuple[Tensor, Tensor]:
    """Views of all pixels that have a neighbour at ``offset`` (rows down, columns right), and of these neighbours.

    Each pair of neighbours is met once, so an offset goes down, or along its row to the right.

    Shapes:
        ``x`` (..., h, w) -> twice (..., h - down, w - |right|).
    """
    down, right = offset
    assert down >= 0, "the pair is met from its upper pixel"
    h, w = x.shape[-2:]
    left = max(0, -right)
    here = x[..., : max(0, h - down), left : max(left, w - max(0, right))]
    there = x[..., down:, max(0, right) : max(0, w - left)]
    return here, there


def disc(radius: int) -> tuple[Offset, ...]:
    """The offsets to all pixels within ``radius``, each pair of neighbours once."""
    if radius < 1:
        raise ValueError(f"`radius` must be at least 1 pixel; got {radius}.")
    square = ((down, right) for down in range(radius + 1) for right in range(-radius, radius + 1))
    return tuple((d, r) for d, r in square if (d, r) > (0, 0) and d * d + r * r <= radius * radius)


def check_image(x: Tensor, *, name: str = "x") -> None:
    """Refuse anything but floating point channels, (c, h, w)."""
    if x.dim() != 3 or x.numel() == 0:
        raise ValueError(f"`{name}` must be an image (channels, height, width), not empty; got shape {tuple(x.shape)}.")
    if not x.dtype.is_floating_point:
        raise ValueError(f"`{name}` must be floating point; got {x.dtype}. Try `{name}.float() / 255`.")
