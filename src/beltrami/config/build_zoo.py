"""Build: the network of Table 1 that a configuration names, as an evolution."""

from collections.abc import Callable
from typing import Any

from beltrami.config.build_scheme import EXPONENTIAL, build_scheme
from beltrami.config.spec import RunConfig
from beltrami.joint import Joint
from beltrami.model import Evolution, zoo

Build = Callable[..., Evolution]
BY_FEATURES: dict[str, Build] = {
    "chebnet-flow": lambda config, channels, **steps: zoo.chebnet(channels, terms=config.baseline.steps, **steps),
    "gat-flow": lambda config, channels, **steps: zoo.gat(channels, **_attention(config), **steps),
    "deepset-flow": lambda config, channels, **steps: zoo.deepset(channels, width=config.baseline.width, **steps),
    "digl-flow": lambda config, channels, **steps: zoo.digl(
        channels, k=config.stencil.k, restart=config.stencil.restart, **_attention(config), **steps
    ),
    "dgcnn-flow": lambda config, channels, **steps: zoo.dgcnn(
        channels, k=config.stencil.k, **_attention(config), **steps
    ),
    "gcn-flow": lambda config, channels, **steps: zoo.gcn(channels, **steps),
}
"""Networks that look at features alone, by name."""

BY_POSITIONS: dict[str, Build] = {
    "monet-flow": lambda config, joint, **steps: zoo.monet(joint, kernels=config.baseline.kernels, **steps),
    "transformer-flow": lambda config, joint, **steps: zoo.transformer(joint, **_attention(config), **steps),
}
"""Networks that look at positions, by name."""

NETWORKS = BY_FEATURES | BY_POSITIONS


def build_network(config: RunConfig, joint: Joint) -> Evolution:
    """The evolution of a row of Table 1 on a state of these channels."""
    _check(config, joint)
    steps: dict[str, Any] = {"layers": int(config.scheme.time), "scheme": build_scheme(config.scheme)}
    if config.model.kind in BY_FEATURES:
        return BY_FEATURES[config.model.kind](config, joint.channels, **steps)
    return BY_POSITIONS[config.model.kind](config, joint, **steps)


def _attention(config: RunConfig) -> dict[str, Any]:
    return {"width": config.diffusivity.width, "heads": config.diffusivity.heads}


def _check(config: RunConfig, joint: Joint) -> None:
    kind, time = config.model.kind, config.scheme.time
    if joint.pos and kind in BY_FEATURES:
        raise ValueError(f"`model.kind={kind}` looks at features alone: set `position.encoding=none` too.")
    if config.scheme.solver == EXPONENTIAL:
        raise ValueError(
            f"`scheme.solver=exponential` solves BLEND's frozen flows alone, and `model.kind={kind}` is another "
            "equation: choose a solver that takes steps, such as euler with `scheme.dt=1`."
        )
    if time < 1 or time != int(time):
        raise ValueError(f"`scheme.time` is the number of layers of `model.kind={kind}`: set a whole one; got {time}.")
