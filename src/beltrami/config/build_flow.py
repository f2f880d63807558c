"""Equation: the flow of a configuration, by its names."""

from collections.abc import Callable

import torch

from beltrami.config.build_scheme import EXPONENTIAL
from beltrami.config.name import named
from beltrami.config.spec import FlowConfig, RunConfig
from beltrami.diffusivity import Diffusivity
from beltrami.energy import Constant, Gauss, PeronaMalik, PolyakovAction, Psi, Roughness
from beltrami.flow import (
    Attachment,
    BeltramiFlow,
    Cost,
    Flow,
    HyperbolicFlow,
    JacobianNorm,
    Kinetic,
    LinearFlow,
    PolyakovFlow,
    Rate,
    Source,
    degree,
)
from beltrami.geometry import PoincareBall
from beltrami.joint import Joint

STORAGE = {"bfloat16": torch.bfloat16, "float16": torch.float16}
PSIS: dict[str, Callable[[FlowConfig], Psi]] = {
    "constant": lambda config: Constant(),
    "gauss": lambda config: Gauss(config.length),
    "perona-malik": lambda config: PeronaMalik(config.length),
    "roughness": lambda config: Roughness(config.length),
}


def build_flow(config: FlowConfig, diffusivity: Diffusivity, joint: Joint) -> Flow:
    rate, source = Rate() if config.rate else None, Source() if config.source else None
    if build_metric(config) is not None:
        if config.frozen:
            raise ValueError("`flow.positions=hyperbolic` is a live flow: set `flow.frozen=false` too.")
        return HyperbolicFlow(diffusivity, joint, rate=rate, source=source)
    if config.frozen:
        if config.storage is not None:
            raise ValueError("`flow.storage` is of live flows: set `flow.frozen=false` too, or leave it null.")
        return LinearFlow(diffusivity, rate=rate, source=source)
    storage = None if config.storage is None else named("flow.storage", config.storage, STORAGE)
    return BeltramiFlow(diffusivity, rate=rate, source=source, storage=storage)


def build_polyakov(config: FlowConfig, family: str) -> PolyakovFlow:
    """The gradient flow of the family's action, with nodes weighed by their degrees."""
    action = PolyakovAction(named("flow.psi", family, PSIS)(config))
    rate, attachment = Rate() if config.rate else None, Attachment() if config.source else None
    return PolyakovFlow(action, mass=degree, rate=rate, attachment=attachment)


def build_metric(config: FlowConfig) -> PoincareBall | None:
    return named("flow.positions", config.positions, {"flat": None, "hyperbolic": PoincareBall()})


def build_costs(config: FlowConfig) -> list[Cost]:
    costs: list[Cost] = [Kinetic(config.kinetic)] if config.kinetic else []
    return [*costs, JacobianNorm(config.jacobian)] if config.jacobian else costs


def check_equation(config: RunConfig) -> None:
    """Refuse a flow and a scheme that do not go together."""
    _check_exponential(config)
    _check_polyakov(config)


def _check_exponential(config: RunConfig) -> None:
    flow = config.flow
    live = not flow.frozen or flow.psi is not None
    if config.scheme.solver == EXPONENTIAL and (live or flow.kinetic or flow.jacobian):
        raise ValueError(
            "`scheme.solver=exponential` solves linear flows alone: set `flow.frozen=true`, `flow.psi=null`, "
            "`flow.kinetic=0` and `flow.jacobian=0` too, or choose another solver."
        )


def _check_polyakov(config: RunConfig) -> None:
    flow, known = config.flow, config.flow.psi is not None
    if known and flow.positions != "flat":
        raise ValueError("`flow.psi` measures flat distances: set `flow.positions=flat` too.")
    if known and config.stencil.strongest is not None:
        raise ValueError(
            "`flow.psi` needs both directions of every edge, and `stencil.strongest` may drop one: set it to null."
        )
    if config.scheme.descends and (not known or flow.kinetic or flow.jacobian):
        raise ValueError(
            "`scheme.descends` needs a flow that goes down an energy: set `flow.psi`, `flow.kinetic=0` and "
            "`flow.jacobian=0` too."
        )
