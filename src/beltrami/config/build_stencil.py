"""Mesh: the stencil that a configuration names."""

from collections.abc import Callable
from typing import Any

from beltrami.config.spec import StencilConfig
from beltrami.diffusivity import EdgeWeights
from beltrami.errors import UnknownName
from beltrami.geometry import PoincareBall
from beltrami.joint import Joint
from beltrami.stencil import (
    KNN,
    AddEdges,
    Chain,
    Charted,
    Complete,
    FeatureSimilarity,
    Isolated,
    Keep,
    KeepStrongest,
    Loops,
    Radius,
    Stencil,
    Symmetric,
    Threshold,
    TopK,
    TrainingOnly,
    Unweighted,
)

FIXED: dict[str, Callable[[StencilConfig], Stencil]] = {
    "keep": lambda config: Keep(),
    "digl": lambda config: TopK(config.k, restart=config.restart),
    "threshold": lambda config: Threshold(config.least, restart=config.restart),
    "complete": lambda config: Complete(),
    "isolated": lambda config: Isolated(),
}
"""Stencils that see the graph alone, by name."""

LOOKING: dict[str, Callable[..., Stencil]] = {
    "knn": lambda config, **where: KNN(config.k, **where),
    "radius": lambda config, **where: Radius(config.radius, **where),
}
"""Stencils that look at the state, by name."""

STENCILS = (*FIXED, *LOOKING)
CHANNELS = ("u", "x", "z")


def build_stencil(config: StencilConfig, joint: Joint, *, ball: PoincareBall | None = None) -> Stencil:
    """The stencil by its name, then symmetric, unweighted and with loops as asked.

    A graph from a file takes the place of the name; the rest is done to it as well.

    Args:
        config: the settings.
        joint: the channels of the state.
        ball: where the positions live, as logarithms at the origin; None where they are flat.
    """
    if config.on not in CHANNELS:
        raise UnknownName("stencil.on", config.on, CHANNELS)
    if config.kind not in STENCILS:
        raise UnknownName("stencil.kind", config.kind, STENCILS)
    parts = [] if config.file is not None else [_named(config, joint, ball)]
    parts += [Symmetric()] if config.symmetric else []
    parts += [] if config.weighted else [Unweighted()]
    parts += [Loops(config.loops)] if config.loops else []
    parts = [part for part in parts if not isinstance(part, Keep)] or [Keep()]
    return parts[0] if len(parts) == 1 else Chain(*parts)


def build_prior(config: StencilConfig) -> Stencil | None:
    """What the input features make of the input graph before anything is learned; None where they are not asked."""
    if config.near < 0:
        raise ValueError(f"`stencil.near` is a number of nodes, 0 for none; got {config.near}.")
    parts: list[Stencil] = [FeatureSimilarity(config.alike)] if config.alike else []
    if config.near:
        parts.append(AddEdges(Chain(KNN(config.near), Symmetric()), weight=config.near_weight))
    return Chain(*parts) if parts else None


def thinned(stencil: Stencil, config: StencilConfig, diffusivity: EdgeWeights) -> Stencil:
    """The stencil and, while training, of its edges the share that diffuses most."""
    if config.strongest is None:
        return stencil
    return Chain(stencil, TrainingOnly(KeepStrongest(config.strongest, diffusivity), diffusivity))


def _named(config: StencilConfig, joint: Joint, ball: PoincareBall | None) -> Stencil:
    if config.kind in FIXED:
        return FIXED[config.kind](config)
    if config.on == "u" and not joint.pos:
        raise ValueError("`stencil.on=u` looks at positions and there are none: set `position.encoding`, or on=x.")
    if ball is None or config.on == "x":
        on: dict[str, Any] = {"on": {"u": joint.u, "x": joint.x, "z": None}[config.on]}
        return LOOKING[config.kind](config, **on)
    if config.on == "z":
        raise ValueError("`stencil.on=z` mixes positions in the ball with features, which are flat: set on=u or on=x.")
    return Charted(LOOKING[config.kind](config, metric=ball), lambda z: ball.exp_origin(z[:, joint.u]))
