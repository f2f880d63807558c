"""Frame: what every competitor is told."""

from dataclasses import dataclass, field
from itertools import pairwise

from beltrami.stencil import Keep, Stencil


@dataclass(frozen=True)
class Frame:
    """Widths, dropout and the graph of a network.

    Args:
        features: channels of the input.
        num_classes: channels of the output.
        positions: channels of positions, which stand beside the features; 0 for none.
        width: hidden channels, of all heads together.
        depth: number of layers.
        input_dropout: share of the input dropped while training.
        dropout: share of hidden values dropped while training.
        stencil: the graph, from the input graph alone.
    """

    features: int
    num_classes: int
    positions: int = 0
    width: int = 64
    depth: int = 2
    input_dropout: float = 0.5
    dropout: float = 0.5
    stencil: Stencil = field(default_factory=Keep)

    def __post_init__(self) -> None:
        if self.width < 1 or self.depth < 1:
            raise ValueError(f"Frame needs `width` and `depth` at least 1; got {self.width}, {self.depth}.")
        if self.stencil.synchronises:
            raise ValueError(
                f"a baseline runs on a graph that stands still, and {type(self.stencil).__name__} looks at the state "
                "of a flow: use a stencil that sees the graph alone, such as Keep, Loops or TopK."
            )

    @property
    def channels(self) -> int:
        """Of the first layer: features and positions."""
        return self.features + self.positions

    @property
    def layers(self) -> list[tuple[int, int, float]]:
        """Channels in, channels out, and dropout before, of each layer."""
        widths = [self.channels, *[self.width] * (self.depth - 1), self.num_classes]
        shares = [self.input_dropout, *[self.dropout] * (self.depth - 1)]
        return [(*ends, share) for ends, share in zip(pairwise(widths), shares, strict=True)]
