"""Build: the competitor that a configuration names."""

from collections.abc import Callable

from beltrami.config.build_scheme import EXPONENTIAL, build_scheme
from beltrami.config.build_stencil import build_stencil
from beltrami.config.build_zoo import NETWORKS
from beltrami.config.spec import RunConfig
from beltrami.errors import UnknownName
from beltrami.joint import Joint
from beltrami.model.baseline import (
    Architecture,
    Baseline,
    adalanczosnet,
    cgnn,
    gat,
    gcn,
    gde,
    gode,
    lanczosnet,
    monet,
    sage_maxpool,
    sage_mean,
)

Build = Callable[[Architecture, RunConfig], Baseline]
LAYERED: dict[str, Build] = {
    "gcn": lambda frame, config: gcn(frame),
    "gat": lambda frame, config: gat(
        frame,
        heads=config.baseline.heads,
        out_heads=config.baseline.out_heads,
        attention_dropout=config.baseline.attention_dropout,
    ),
    "monet": lambda frame, config: monet(frame, kernels=config.baseline.kernels),
    "sage-mean": lambda frame, config: sage_mean(frame),
    "sage-maxpool": lambda frame, config: sage_maxpool(frame),
    "lanczosnet": lambda frame, config: lanczosnet(frame, steps=config.baseline.steps),
    "adalanczosnet": lambda frame, config: adalanczosnet(frame, steps=config.baseline.steps),
}
CONTINUOUS: dict[str, Build] = {
    "cgnn": lambda frame, config: cgnn(
        frame, scheme=build_scheme(config.scheme), time=config.scheme.time, mixing=config.baseline.mixing
    ),
    "gde": lambda frame, config: gde(frame, scheme=build_scheme(config.scheme), time=config.scheme.time),
    "gode": lambda frame, config: gode(frame, scheme=build_scheme(config.scheme), time=config.scheme.time),
}
RIVALS = LAYERED | CONTINUOUS


def build_rival(config: RunConfig, *, features: int, positions: int, num_classes: int) -> Baseline:
    """The competitor for inputs of these widths; ``positions`` 0 for none."""
    if config.model.kind not in RIVALS:
        raise UnknownName("model.kind", config.model.kind, ("blend", *NETWORKS, *RIVALS))
    _check_rival(config)
    frame = Architecture(
        features,
        num_classes,
        positions=positions,
        width=config.baseline.width,
        depth=config.baseline.depth,
        input_dropout=config.model.input_dropout,
        dropout=config.model.dropout,
        stencil=build_stencil(config.stencil, Joint(1, 1)),
    )
    return RIVALS[config.model.kind](frame, config)


def _check_rival(config: RunConfig) -> None:
    kind, stencil = config.model.kind, config.stencil
    if stencil.remesh is not None or stencil.strongest is not None:
        raise ValueError(
            f"`model.kind={kind}` runs on a graph that stands still: "
            "leave `stencil.remesh` and `stencil.strongest` null."
        )
    if kind in CONTINUOUS and config.scheme.solver == EXPONENTIAL:
        raise ValueError(
            f"`scheme.solver=exponential` solves BLEND's frozen flows alone, and `model.kind={kind}` is another "
            "equation: choose a solver that takes steps, such as rk4 with `scheme.dt`."
        )
