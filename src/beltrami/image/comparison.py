"""Comparison: an image before and after, beside its edges, in one picture."""

import torch
from torch import Tensor

from beltrami.image.file import Picture
from beltrami.image.surface import Surface

GAP = 8  # pixels of white between the panels


def comparison(before: Tensor, after: Tensor, surface: Surface) -> Picture:
    """Side by side: the input, the output, and the edge indicator of eq. (4) on the output, dark where edges are.

    Shapes:
        ``before``, ``after`` (c, h, w) -> a picture of (3, h, 3 w + 2 gaps), 8 bits.
    """
    indicator = surface.pullback(after).indicator
    panels = [panel.clamp(0.0, 1.0).expand(3, -1, -1) for panel in (before, after, indicator[None])]
    white = torch.ones_like(panels[0][..., :1]).expand(-1, -1, GAP)
    return Picture(torch.cat((panels[0], white, panels[1], white, panels[2]), dim=-1))
